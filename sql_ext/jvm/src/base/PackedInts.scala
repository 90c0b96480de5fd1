package org.apache.spark.sql.sieve.base

/**
 * Small numbers, each in the bits that the difference of the greatest and the least number needs; equal
 * numbers need no bits. No number spans two words.
 */
final class PackedInts private (least: Int, bits: Int, words: Array[Long]) {
  def bytes: Long = words.length.toLong * java.lang.Long.BYTES

  def apply(i: Int): Int =
    if (bits == 0) least
    else {
      val each = java.lang.Long.SIZE / bits
      least + (words(i / each) >>> (i % each * bits) & (1L << bits) - 1).toInt
    }
}

object PackedInts {
  /** @param values the numbers, none negative */
  def of(values: Array[Int]): PackedInts = {
    val least = if (values.isEmpty) 0 else values.min
    val most = if (values.isEmpty) 0 else values.max
    val bits = Integer.SIZE - Integer.numberOfLeadingZeros(most - least)
    val each = if (bits == 0) 1 else java.lang.Long.SIZE / bits
    val words = new Array[Long](if (bits == 0) 0 else (values.length + each - 1) / each)
    if (bits > 0)
      values.indices.foreach(i => words(i / each) |= (values(i) - least).toLong << (i % each * bits))
    new PackedInts(least, bits, words)
  }
}
