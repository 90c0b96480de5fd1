package org.apache.spark.sql.sieve.formats

import java.lang.ref.SoftReference
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger
import scala.util.Try
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.sieve.base.LruMap

/**
 * Caches the statuses of a table's data files for later scans of the table. Without this cache, an index would double
 * the planning time of a scan of 10,000 files, mostly because creating Hadoop's paths takes long.
 */
private final class IcebergStatuses(takesPaths: Boolean) {
  /** The number of files in the largest scan so far. */
  private var most = 0
  private val known = new ConcurrentHashMap[String, IcebergStatus]
  private val numbered = new AtomicInteger

  /** A placeholder that precedes the first status of each scan. */
  val start: IcebergStatus = new IcebergStatus("", IcebergStatuses.part, isPlain = false, number = -1)

  /**
   * The status of the data file at a location, with these numbers of bytes and rows. Iceberg creates a new string for
   * each location, and computing the string's hash takes longer than comparing two strings. So this method first
   * compares the location with the location that followed `previous` in an earlier scan.
   */
  def after(previous: IcebergStatus, location: String, bytes: Long, rows: Long): IcebergStatus = {
    val guess = previous.next
    if (guess != null && guess.isOf(location, bytes, rows)) guess
    else {
      val found = Option(known.get(location)).filter(_.isOf(location, bytes, rows)).getOrElse(
        known.compute(location, (_, old) => if (old != null && old.isOf(location, bytes, rows)) old
          else made(location, bytes, rows, if (old == null) numbered.getAndIncrement else old.number)))
      previous.next = found
      found
    }
  }

  private def made(location: String, bytes: Long, rows: Long, number: Int): IcebergStatus = {
    // Hadoop has no paths for some names of an object store, such as `a:b/c`.
    val path = Try(IcebergFiles.path(location)).toOption
    val status = new FileStatus(bytes, false, 0, 0, rows, path.getOrElse(IcebergStatuses.part.getPath))
    new IcebergStatus(location, status, path.exists(isPlain(location, _)), number)
  }

  /**
   * True if no other location has this path. Hadoop gives the path `a/b` also to the locations `a//b`, `a/./b` and
   * `a/b/`, but an object store may have a file at each of these locations.
   */
  private def isPlain(location: String, path: Path): Boolean =
    location == path.toString || (takesPaths && (location == path.toUri.getPath || location == path.toString.replaceFirst(":", "://")))

  /**
   * False if the cache contains far more files than the largest scan. `files` is the number of files that the next scan
   * reads.
   */
  def suits(files: Int): Boolean = {
    most = math.max(most, files)
    known.size <= 2 * most + 1000
  }
}

/**
 * The status of a data file.
 *
 * @param isPlain true if no other data file can have the same path
 * @param number  the number of the location among the table's locations, from 0
 */
private final class IcebergStatus(location: String, val status: FileStatus, val isPlain: Boolean, val number: Int) {
  /**
   * The status that followed this status in the latest scan. The field is only a guess, so threads need no lock to set
   * it.
   */
  var next: IcebergStatus = _

  def isOf(where: String, bytes: Long, rows: Long): Boolean =
    status.getLen == bytes && status.getModificationTime == rows && location == where
}

private object IcebergStatuses {
  /** The status of a task that reads only a part of a data file. */
  val part = new FileStatus(0, false, 0, 0, 0, new Path("/"))
  /** The statuses of the most recently scanned tables. If memory is short, Java removes the statuses. */
  private val tables = new LruMap[(String, String), SoftReference[IcebergStatuses]](100)

  /**
   * The classes with which Iceberg opens files by Hadoop's paths. For these classes, `/a`, `file:/a` and `file:///a` are
   * locations of one file.
   */
  private val ofPaths = Set("HadoopFileIO", "ResolvingFileIO")

  /** The statuses of a table's files, for a scan of this number of files. */
  def of(iceberg: AnyRef, files: Int): IcebergStatuses = tables.synchronized {
    val io = Reflection.call(iceberg, "io").getClass.getSimpleName
    val key = (Reflection.call(iceberg, "location").toString, io)
    Option(tables.get(key)).flatMap(own => Option(own.get)).filter(_.suits(files)).getOrElse {
      val made = new IcebergStatuses(ofPaths(io))
      made.suits(files)
      tables.put(key, new SoftReference(made))
      made
    }
  }
}
