package org.apache.spark.sql.sieve.ask


/**
 * Hashes sorted by their first bits: the few hashes of one bucket are adjacent, without empty places.
 * The object holds the start of each bucket; its owner holds the hashes.
 */
final class Buckets private (starts: Array[Int], shift: Int) {
  def bytes: Long = starts.length.toLong * Integer.BYTES

  /** The position of the hash if it passes a test, or -1. */
  def find(hash: Long, is: Int => Boolean): Int = {
    val bucket = (hash >>> shift).toInt
    var at = starts(bucket)
    val end = starts(bucket + 1)
    while (at < end && !is(at)) at += 1
    if (at < end) at else -1
  }
}

object Buckets {
  // Buckets take half a byte per file, and a look-up takes a few steps.
  private val mean = 8

  /** The buckets of some hashes, and the position of each hash. */
  def of(hashes: Array[Long]): (Buckets, Array[Int]) = {
    // At least one bit: the JVM would take a shift by 64 as a shift by 0.
    val bits = math.max(1, java.lang.Long.SIZE - java.lang.Long.numberOfLeadingZeros(hashes.length / mean))
    val shift = java.lang.Long.SIZE - bits
    val starts = new Array[Int]((1 << bits) + 1)
    hashes.foreach(hash => starts((hash >>> shift).toInt + 1) += 1)
    (1 until starts.length).foreach(k => starts(k) += starts(k - 1))
    val next = starts.clone
    val places = hashes.map { hash =>
      val bucket = (hash >>> shift).toInt
      next(bucket) += 1
      next(bucket) - 1
    }
    (new Buckets(starts, shift), places)
  }
}
