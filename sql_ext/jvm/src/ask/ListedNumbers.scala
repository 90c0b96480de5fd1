package org.apache.spark.sql.sieve.ask

import java.util.IdentityHashMap
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, PartitionDirectory}
import org.apache.spark.sql.sieve.base.Reason
import org.apache.spark.sql.sieve.base.Reason.Reason
import org.apache.spark.sql.sieve.formats.Locations

/**
 * The numbers of all listed files in a file dictionary.
 *
 * @param files   the listed files, in the order of the listing
 * @param numbers the number of each file; if no index covers the file, -1 - r, where r is the id of the reason
 */
final class ListedNumbers(known: FileDictionary, files: Array[FileStatus], numbers: Array[Int]) {
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

/**
 * Caches the numbers of listed files. Consecutive scans of a table often list the same statuses, so the driver looks up
 * each status only once. If each query looked up 10,000 files, its planning would take a fifth longer. The driver first
 * compares a listing with the latest listing. For 10,000 equal statuses, this comparison takes about 4 ms less than
 * finding each status in the map.
 */
final class NumberedStatuses(known: FileDictionary) {
  /** The number of files in the largest listing so far. */
  private var most = 0
  private val numbers = new IdentityHashMap[FileStatus, Integer]
  private var latest = new ListedNumbers(known, Array.empty, Array.empty)

  /** Returns the numbers of the listed files. The state `shown` of a location determines the number. */
  def of(listed: Seq[PartitionDirectory], locations: Locations): ListedNumbers = synchronized {
    if (!latest.areOf(listed)) {
      val files = listed.flatMap(_.files.map(_.fileStatus)).toArray
      most = math.max(most, files.length)
      // Statuses that are no longer listed must not fill the memory.
      if (numbers.size > 2 * most + 1000) numbers.clear()
      val found = for (directory <- listed; file <- directory.files) yield
        Option(numbers.get(file.fileStatus)).fold(lookUp(directory.values, file, locations))(_.intValue)
      latest = new ListedNumbers(known, files, found.toArray)
    }
    latest
  }

  private def lookUp(values: InternalRow, file: FileStatusWithMetadata, locations: Locations): Int =
    locations.of(values, file).fold(-1 - Reason.ChangedFile.id) { now =>
      val number = known.lookUp(FileDictionary.hash(now.path), now.shown).fold(-1 - _.id, _.number)
      numbers.put(file.fileStatus, number)
      number
    }
}
