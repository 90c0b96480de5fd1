package org.apache.spark.sql.sieve.ask


/**
 * A look-up structure for an array of hashes. The array is sorted by the first bits of the hashes, and hashes with the
 * same first bits form a bucket. `Buckets` stores only the start of each bucket. The owner of the `Buckets` stores the
 * array.
 */
final class Buckets private (starts: Array[Int], shift: Int) {
  def bytes: Long = starts.length.toLong * Integer.BYTES

  /** The first position in the bucket of `hash` for which `is` returns true, or -1 if there is none. */
  def find(hash: Long, is: Int => Boolean): Int = {
    val bucket = (hash >>> shift).toInt
    var at = starts(bucket)
    val end = starts(bucket + 1)
    while (at < end && !is(at)) at += 1
    if (at < end) at else -1
  }
}

object Buckets {
  // On average, a bucket contains at most `mean` hashes, and at least half as many. The starts of the buckets take at
  // most one byte of memory per hash, and a look-up compares only a few hashes.
  private val mean = 8

  /** Returns the buckets of these hashes, and the position at which the owner must store each hash. */
  def of(hashes: Array[Long]): (Buckets, Array[Int]) = {
    // The number of bits is at least one, because the JVM would treat a shift by 64 bits as a shift by 0 bits.
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
