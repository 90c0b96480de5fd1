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
   * Replaces the texts of each location by one row with an array of their distinct grams, in ascending order. A row
   * with a negative location remains a row of its own, and its array is NULL.
   *
   * @param frame    rows in which the rows of each location are adjacent
   * @param text     the quoted name of the column with the texts
   * @param location the name of the column with the locations
   */
  def of(frame: DataFrame, text: String, location: String): DataFrame = {
    val texts = frame.select(col(text).cast("binary"), col(location))
    texts.mapPartitions(new ByLocation(_): Iterator[(Array[Int], Int)])(Encoders.product).toDF(texts.columns.toSeq: _*)
  }

  private class ByLocation(rows: Iterator[Row]) extends Iterator[(Array[Int], Int)] {
    private val texts = rows.buffered
    override def hasNext: Boolean = texts.hasNext

    override def next(): (Array[Int], Int) = {
      val location = texts.head.getInt(1)
      if (location < 0) { texts.next(); (null, location) } else (ofLocation(location), location)
    }

    /** Reads all rows of the next location, and returns their grams. */
    private def ofLocation(location: Int): Array[Int] = {
      val grams = new DistinctGrams
      while (texts.hasNext && texts.head.getInt(1) == location) {
        val row = texts.next()
        if (!row.isNullAt(0)) grams.add(row.getAs[Array[Byte]](0))
      }
      grams.sorted
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
