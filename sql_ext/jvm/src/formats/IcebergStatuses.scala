package org.apache.spark.sql.sieve.formats

import java.lang.ref.SoftReference
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.sieve.base.LruMap

/**
 * Caches the statuses of a table's data files for later scans of the table. Without this cache, an index would double
 * the planning time of a scan of 10,000 files, mostly because creating Hadoop's paths takes long.
 */
private final class IcebergStatuses {
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
          else IcebergStatuses.made(location, bytes, rows, if (old == null) numbered.getAndIncrement else old.number)))
      previous.next = found
      found
    }
  }

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
  private val tables = new LruMap[String, SoftReference[IcebergStatuses]](100)

  /** The statuses of a table's files, for a scan of this number of files. */
  def of(iceberg: AnyRef, files: Int): IcebergStatuses = tables.synchronized {
    val location = Reflection.call(iceberg, "location").toString
    Option(tables.get(location)).flatMap(own => Option(own.get)).filter(_.suits(files)).getOrElse {
      val made = new IcebergStatuses
      made.suits(files)
      tables.put(location, new SoftReference(made))
      made
    }
  }

  private def made(location: String, bytes: Long, rows: Long, number: Int): IcebergStatus = {
    // Hadoop's paths merge adjacent slashes, but an object store may hold both `a/b` and `a//b`.
    val isPlain = !location.replaceFirst("^[A-Za-z][A-Za-z0-9+.-]*:/*", "").contains("//")
    val status = new FileStatus(bytes, false, 0, 0, rows, IcebergFiles.path(location))
    new IcebergStatus(location, status, isPlain, number)
  }
}
