package org.apache.spark.sql.sieve.ask

import java.lang.ref.SoftReference
import java.util.WeakHashMap
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.sieve.base.Reason
import org.apache.spark.sql.sieve.base.Reason.Reason
import org.apache.spark.sql.sieve.formats.State

/**
 * The numbers of all listed files in a file dictionary. Spark caches the listing of a table, so consecutive scans of
 * the table list the same objects. The driver looks up the files of such a listing only once. If each query looked up
 * 10,000 files, its planning would take a fifth longer.
 *
 * @param files   the listed files, in the order of the listing
 * @param numbers the number of each file; -1 - r if no index covers the file, for the reason whose id is r
 */
final class ListedNumbers private (known: FileDictionary, files: Array[FileStatus], numbers: Array[Int]) {
  /** For each file, the file in the dictionary, or the reason why no index covers it. */
  def iterator: Iterator[Either[Reason, IndexedFile]] = numbers.iterator.map { number =>
    if (number < 0) Left(Reason(-1 - number)) else Right(IndexedFile(number, known.rangesOf(number)))
  }

  /** True if an index covers each file. */
  lazy val areKnown: Boolean = numbers.forall(_ >= 0)

  /** The number of ranges of all files, if an index covers each file. */
  lazy val ranges: Long = numbers.iterator.map(known.rangesOf(_).toLong).sum

  private def isOf(listed: Seq[PartitionDirectory], known: FileDictionary): Boolean = {
    var k = 0
    def isNext(file: FileStatus) = { k += 1; k <= files.length && (files(k - 1) eq file) }
    (this.known eq known) && listed.forall(_.files.forall(file => isNext(file.fileStatus))) && k == files.length
  }
}

object ListedNumbers {
  // The numbers refer to a dictionary, and the cache of dictionaries limits how much memory they may take. So this map
  // must not keep a dictionary alive.
  private val cached = new WeakHashMap[FileIndex, SoftReference[ListedNumbers]]

  def of(location: FileIndex, listed: Seq[PartitionDirectory], known: FileDictionary): ListedNumbers =
    cached.synchronized(Option(cached.get(location))).flatMap(of => Option(of.get)).filter(_.isOf(listed, known)).getOrElse {
      val files = listed.iterator.flatMap(_.files).map(_.fileStatus).toArray
      val made = new ListedNumbers(known, files, files.map(number(_, known)))
      cached.synchronized(cached.put(location, new SoftReference(made)))
      made
    }

  private def number(file: FileStatus, known: FileDictionary): Int = {
    val (path, state) = (FileDictionary.hash(file.getPath), State(file.getLen, file.getModificationTime))
    known.find(path, state).fold(-1 - known.whyUnknown(path, Some(state)).id)(_.number)
  }
}
