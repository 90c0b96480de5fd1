package org.apache.spark.sql.sieve.statements

import org.apache.spark.sql.{DataFrame, Encoders, Row}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.sieve.predicate.Grams
import org.apache.spark.util.collection.OpenHashSet

/**
 * Computes the keys of an index on substrings: the distinct grams (4 adjacent bytes) of each location's texts.
 *
 * Executors compute the grams in the JVM. Python workers would take almost three times as long, because Spark would
 * have to send them all texts.
 */
private object DistinctGrams {
  /**
   * Replaces the texts of each location by one row with an array of their distinct grams, in ascending order, and with
   * the signature of the texts. A row with a negative location remains a row of its own, without grams and signature.
   *
   * @param frame    rows in which the rows of each location are adjacent
   * @param text     the quoted name of the column with the texts
   * @param location the name of the column with the locations
   * @param bits     the binary logarithm of a signature's size in bits; 0 for no signature
   * @param folds    whether a signature in which few bits are set becomes smaller
   */
  def of(frame: DataFrame, text: String, location: String, bits: Int, folds: Boolean): DataFrame = {
    val texts = frame.select(col(text).cast("binary"), col(location))
    texts.mapPartitions(new ByLocation(_, bits, folds): Iterator[OfLocation])(Encoders.product)
      .toDF(texts.columns.toSeq :+ signature: _*)
  }

  /** The name of the column with the signatures. Python code calls this name `SIGNATURE`. */
  private val signature = "__sieve_signature__"
  private type OfLocation = (Array[Int], Int, Array[Byte])

  private class ByLocation(rows: Iterator[Row], bits: Int, folds: Boolean) extends Iterator[OfLocation] {
    private val texts = rows.buffered
    override def hasNext: Boolean = texts.hasNext

    override def next(): OfLocation = {
      val location = texts.head.getInt(1)
      if (location < 0) { texts.next(); (null, location, null) } else ofLocation(location)
    }

    /** Reads all rows of the next location. */
    private def ofLocation(location: Int): OfLocation = {
      val grams = new DistinctGrams
      val signature = if (bits == 0) None else Some(new Signature(bits))
      while (texts.hasNext && texts.head.getInt(1) == location) {
        val row = texts.next()
        if (!row.isNullAt(0)) {
          val text = row.getAs[Array[Byte]](0)
          grams.add(text)
          signature.foreach(_.add(text))
        }
      }
      (grams.sorted, location, signature.map(s => if (folds) s.folded else s.bytes).orNull)
    }
  }
}

/**
 * Collects the distinct grams of texts.
 *
 * Most grams of a text occur in earlier texts, too. A small table, in which later grams replace earlier grams, finds
 * most repeated grams. The table fits into the cache of a core, unlike the set of all grams.
 */
private class DistinctGrams {
  private val recent = new Array[Int](1 << slotBits)
  // Initially, each slot contains a gram that belongs in another slot, so that no look-up finds a gram.
  recent(0) = 1
  private val all = new OpenHashSet[Int]
  private def slotBits = 18

  def add(text: Array[Byte]): Unit = {
    var (gram, k) = (0, 0)
    while (k < text.length) {
      gram = gram << 8 | text(k) & 0xff
      k += 1
      if (k >= Grams.bytes) {
        val slot = (gram * 0x9E3779B9) >>> (32 - slotBits)
        if (recent(slot) != gram) {
          recent(slot) = gram
          all.add(gram)
        }
      }
    }
  }

  def sorted: Array[Int] = {
    val found = all.iterator.toArray
    java.util.Arrays.sort(found)
    found
  }
}
