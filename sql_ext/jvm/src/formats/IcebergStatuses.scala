package org.apache.spark.sql.sieve.formats

import java.lang.ref.SoftReference
import java.util.concurrent.ConcurrentHashMap
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

  /** The status of the data file at a location, with these numbers of bytes and rows. */
  def get(location: String, bytes: Long, rows: Long): IcebergStatus = {
    val found = known.get(location)
    if (found != null && found.status.getLen == bytes && found.status.getModificationTime == rows) found
    else {
      val path = IcebergFiles.path(location)
      // Hadoop's paths merge adjacent slashes, but an object store may hold both `a/b` and `a//b`.
      val isPlain = !location.replaceFirst("^[A-Za-z][A-Za-z0-9+.-]*:/*", "").contains("//")
      val made = IcebergStatus(new FileStatus(bytes, false, 0, 0, rows, path), isPlain)
      known.put(location, made)
      made
    }
  }

  /**
   * Prepares for a scan of this number of files. Clears the cache if it contains far more files than the largest scan.
   */
  def expect(files: Int): Unit = synchronized {
    most = math.max(most, files)
    if (known.size > 2 * most + 1000) known.clear()
  }
}

/**
 * The status of a data file.
 *
 * @param isPlain true if no other data file can have the same path
 */
private final case class IcebergStatus(status: FileStatus, isPlain: Boolean)

private object IcebergStatuses {
  /** The status of a task that reads only a part of a data file. */
  val part = new FileStatus(0, false, 0, 0, 0, new Path("/"))
  /** The statuses of the most recently scanned tables. If memory is short, Java removes the statuses. */
  private val tables = new LruMap[String, SoftReference[IcebergStatuses]](100)

  /** The statuses of a table's files, for a scan of this number of files. */
  def of(iceberg: AnyRef, files: Int): IcebergStatuses = tables.synchronized {
    val location = IcebergApi.call(iceberg, "location").toString
    val statuses = Option(tables.get(location)).flatMap(own => Option(own.get)).getOrElse {
      val made = new IcebergStatuses
      tables.put(location, new SoftReference(made))
      made
    }
    statuses.expect(files)
    statuses
  }
}
