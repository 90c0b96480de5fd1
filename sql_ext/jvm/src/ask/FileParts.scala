package org.apache.spark.sql.sieve.ask

import java.util.{Arrays, BitSet}
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.sieve.base.Unpack
import org.apache.spark.sql.sieve.formats.{ByteRange, FilePart, FileRanges}

/**
 * The files that a scan reads only in part. For each file, an object of this class stores the offsets at which the file
 * is cut, and the ranges that the scan skips. The offsets come from the front end's answers, not from the file
 * dictionary (see decision 8).
 *
 * @param numbers the file numbers, ascending
 * @param ends    for each file, the total number of ranges in this and all earlier files
 * @param cuts    the offsets at which the files are cut; a file with n ranges has n - 1 offsets
 */
final class FileParts private (
    numbers: Array[Int], ends: Array[Int], footers: Array[Long], cuts: Array[Long], skip: BitSet) {
  /**
   * The ranges of a file that the scan reads, and the ranges that it skips. Returns None if the scan reads or skips the
   * whole file.
   */
  def of(number: Int, length: Long): Option[(FilePart, Seq[ByteRange])] = {
    val at = Arrays.binarySearch(numbers, number)
    if (at < 0) None
    else {
      val first = if (at == 0) 0 else ends(at - 1)
      // Each file has one cut fewer than it has ranges. So the total number of cuts in the `at` earlier files is their
      // number of ranges minus `at`.
      val own = cuts.slice(first - at, ends(at) - at - 1)
      val (skipped, kept) = FileRanges.between(own.toSeq, length).zipWithIndex
        .partition { case (_, k) => skip.get(first + k) }
      Some((FilePart(kept.map(_._1), footers(at)), skipped.map(_._1)))
    }
  }
}

object FileParts {
  val none = new FileParts(Array.empty, Array.empty, Array.empty, Array.empty, new BitSet)

  def read(parts: JsonNode): FileParts = {
    val files = parts.get("files").asInt
    val (numbers, ends, footers) = (new Array[Int](files), new Array[Int](files), new Array[Long](files))
    val rows = Unpack.numbers(parts.get("rows"))
    for (i <- 0 until files) {
      numbers(i) = rows.get().toInt + (if (i == 0) 0 else numbers(i - 1))
      ends(i) = rows.get().toInt + (if (i == 0) 0 else ends(i - 1))
      footers(i) = rows.get()
    }
    val sizes = Unpack.numbers(parts.get("sizes"))
    val cuts = new Array[Long](sizes.remaining)
    for (i <- 0 until files; first = if (i == 0) 0 else ends(i - 1); k <- first - i until ends(i) - i - 1)
      cuts(k) = sizes.get(k) + (if (k == first - i) 0 else cuts(k - 1))
    new FileParts(numbers, ends, footers, cuts, BitSet.valueOf(Unpack.bytes(parts.get("skip"))))
  }
}
