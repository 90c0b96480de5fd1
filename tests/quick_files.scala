package org.apache.spark.sql.sieve.tests

import java.nio.file.Files
import java.util.ArrayList

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{LocalFileSystem, Path, RawLocalFileSystem}
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.mapred.JobConf

/**
 * Hadoop's local file system, which sets modes by a system call.
 *
 * Without its native library Hadoop runs `chmod` in a process of its own for each file and folder
 * that it makes: 39 of them for a table of ten files.
 */
final class QuickFiles extends LocalFileSystem(new QuickRawFiles)

final class QuickRawFiles extends RawLocalFileSystem {
  override def setPermission(path: Path, permission: FsPermission): Unit =
    Files.setAttribute(pathToFile(path).toPath, "unix:mode", Int.box(permission.toShort.toInt))
}

/**
 * A driver's settings of Hadoop without the half that is YARN's. Spark copies them all for each file
 * that it reads, and sends them with each scan.
 */
object QuickSettings {
  def strip(settings: Configuration): Unit = {
    // Brings YARN's defaults along, if nothing else has; all settings are then read again.
    new JobConf()
    val names = new ArrayList[String]
    val all = settings.iterator
    while (all.hasNext) {
      val name = all.next().getKey
      if (name.startsWith("yarn.") || name.startsWith("mapreduce.jobhistory.")) names.add(name)
    }
    names.forEach(name => settings.unset(name))
  }
}
