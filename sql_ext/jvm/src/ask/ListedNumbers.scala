package org.apache.spark.sql.sieve.ask

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.execution.datasources.PartitionDirectory
import org.apache.spark.sql.sieve.base.Reason
import org.apache.spark.sql.sieve.base.Reason.Reason
import org.apache.spark.sql.sieve.formats.Locations

/**
 * The numbers of all listed files in a file dictionary. Consecutive scans of a table often list the same statuses, so
 * the driver looks up these files only once. If each query looked up 10,000 files, its planning would take a fifth
 * longer.
 *
 * @param files   the listed files, in the order of the listing
 * @param numbers the number of each file; -1 - r if no index covers the file, for the reason whose id is r
 */
final class ListedNumbers private (known: FileDictionary, files: Array[FileStatus], numbers: Array[Int]) {
  /** True if an index covers each file. */
  val areKnown: Boolean = numbers.forall(_ >= 0)

  /** The number of ranges of all covered files. */
  val ranges: Long = numbers.iterator.filter(_ >= 0).map(known.rangesOf(_).toLong).sum

  /** For each file, the file in the dictionary, or the reason why no index covers it. */
  def iterator: Iterator[Either[Reason, IndexedFile]] = numbers.iterator.map { number =>
    if (number < 0) Left(Reason(-1 - number)) else Right(IndexedFile(number, known.rangesOf(number)))
  }

  /** True if a listing contains exactly these statuses, in the same order. */
  def areOf(listed: Seq[PartitionDirectory]): Boolean = {
    var k = 0
    def isNext(file: FileStatus) = { k += 1; k <= files.length && (files(k - 1) eq file) }
    listed.forall(_.files.forall(file => isNext(file.fileStatus))) && k == files.length
  }
}

object ListedNumbers {
  /** Looks up the files of a listing by the state `shown` of each location. */
  def of(listed: Seq[PartitionDirectory], locations: Locations, known: FileDictionary): ListedNumbers = {
    val numbers = for (directory <- listed; file <- directory.files) yield
      locations.of(directory.values, file).toRight(Reason.ChangedFile)
        .flatMap(now => known.lookUp(FileDictionary.hash(now.path), now.shown)).fold(-1 - _.id, _.number)
    new ListedNumbers(known, listed.flatMap(_.files.map(_.fileStatus)).toArray, numbers.toArray)
  }
}
