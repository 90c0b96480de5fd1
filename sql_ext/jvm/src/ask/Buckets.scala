package org.apache.spark.sql.sieve.ask

import org.apache.spark.sql.sieve.base.Policy

/**
 * Hashes in the order of their first bits: those of one bucket lie side by side, a few of them, and no
 * place is empty. Holds where each bucket starts, and who owns it the hashes.
 */
final class Buckets private (starts: Array[Int], shift: Int) {
  def bytes: Long = starts.length.toLong * Integer.BYTES

  /** Where a hash is, if it passes a test; else -1. */
  def find(hash: Long, is: Int => Boolean): Int = {
    val bucket = (hash >>> shift).toInt
    var at = starts(bucket)
    val end = starts(bucket + 1)
    while (at < end && !is(at)) at += 1
    if (at < end) at else -1
  }
}

object Buckets {
  private val mean = Policy.limit("hashes_a_bucket")

  /** The buckets of some hashes, and the place of each. */
  def of(hashes: Array[Long]): (Buckets, Array[Int]) = {
    // One bit at the least: a shift of all 64 would be one of none.
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
