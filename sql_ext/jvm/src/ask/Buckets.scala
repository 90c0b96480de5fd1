package org.apache.spark.sql.sieve.ask


/**
 * A look-up structure for hashes in an array, sorted by the first bits of each hash. Each bucket contains a few
 * adjacent hashes. `Buckets` stores only the start of each bucket. The owner of the `Buckets` stores the hashes.
 */
final class Buckets private (starts: Array[Int], shift: Int) {
  def bytes: Long = starts.length.toLong * Integer.BYTES

  /** The position of the first entry in the hash's bucket for which `is` returns true, or -1. */
  def find(hash: Long, is: Int => Boolean): Int = {
    val bucket = (hash >>> shift).toInt
    var at = starts(bucket)
    val end = starts(bucket + 1)
    while (at < end && !is(at)) at += 1
    if (at < end) at else -1
  }
}

object Buckets {
  // The mean number of hashes per bucket. With this mean, the buckets need half a byte of memory per file, and a
  // look-up takes a few steps.
  private val mean = 8

  /** Returns the buckets of some hashes, and the position of each hash. */
  def of(hashes: Array[Long]): (Buckets, Array[Int]) = {
    // The number of bits is at least one, because the JVM treats a shift by 64 bits as a shift by 0 bits.
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
