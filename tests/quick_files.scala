package org.apache.spark.sql.sieve.tests

import java.io.File
import java.nio.file.Files
import java.util.{ArrayList, List => JList}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{LocalFileSystem, Path, RawLocalFileSystem}
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.hdfs.HdfsConfiguration
import org.apache.hadoop.mapred.JobConf

/**
 * Hadoop's local file system, which sets modes by a system call, and on which the files that a task
 * has written are two seconds old.
 *
 * Without its native library Hadoop runs `chmod` in a process of its own for each file and folder
 * that it makes: 39 of them for a table of ten files. A build waits until a table's newest file is a
 * second old, and lists the table again.
 */
final class QuickFiles extends LocalFileSystem(new QuickRawFiles)

final class QuickRawFiles extends RawLocalFileSystem {
  override def setPermission(path: Path, permission: FsPermission): Unit =
    Files.setAttribute(pathToFile(path).toPath, "unix:mode", Int.box(permission.toShort.toInt))

  override def rename(from: Path, to: Path): Boolean = {
    // A task's commit: nobody has seen its files before, under other times.
    if (to.toUri.getPath.contains("/_temporary/")) age(pathToFile(from))
    super.rename(from, to)
  }

  private def age(file: File): Unit = {
    val inside = file.listFiles
    if (inside == null) file.setLastModified(file.lastModified - 2000)
    else java.util.Arrays.stream(inside).forEach(age(_))
  }
}

/**
 * A driver's settings of Hadoop without those of services that no test starts: nine tenths of them.
 * Spark copies all settings for each file that it reads, and sends them with each scan.
 *
 * Both lines of Spark load this, so it calls nothing of Scala's library, whose releases differ.
 */
object QuickSettings {
  private val services = JList.of(
    "yarn.", "ipc.", "ha.", "net.", "nfs.", "adl.", "ftp.", "rpc.", "tfile.", "seq.", "io.erasurecode.",
    "mapreduce.jobhistory.", "mapreduce.map.", "mapreduce.reduce.", "mapreduce.shuffle.",
    "mapreduce.job.", "mapreduce.task.", "mapreduce.client.", "mapreduce.cluster.",
    "fs.s3a.", "fs.azure.", "fs.adl.", "fs.wasb.", "fs.abfs.", "fs.viewfs.", "fs.ftp.",
    "hadoop.security.", "hadoop.http.", "hadoop.registry.", "hadoop.ssl.", "hadoop.zk.",
    "hadoop.kerberos.", "hadoop.caller.", "hadoop.rpc."
  )

  def strip(settings: Configuration): Unit = {
    // These bring further files of defaults. Later on, each would have all settings read again.
    new JobConf()
    new HdfsConfiguration()
    val names = new ArrayList[String]
    val all = settings.iterator
    while (all.hasNext) {
      val name = all.next().getKey
      if (services.stream.anyMatch(name.startsWith(_))) names.add(name)
    }
    names.forEach(name => settings.unset(name))
    // Where each setting came from is copied, too. Of what is left it tells defaults from what is set.
    val sources = classOf[Configuration].getDeclaredField("updatingResource")
    sources.setAccessible(true)
    sources.get(settings).asInstanceOf[java.util.Map[String, Array[String]]].keySet.removeAll(names)
  }
}
