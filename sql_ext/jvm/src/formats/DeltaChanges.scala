package org.apache.spark.sql.sieve.formats

import scala.collection.mutable
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}

/**
 * The changes that commits have made to a Delta table's files.
 *
 * @param versions the numbers of the commits
 * @param touched  the paths of all files that a commit added or removed, in the form that listings use
 * @param there    the touched files that the table contains after the last commit
 */
final case class DeltaChanges(versions: Seq[Long], touched: Seq[String], there: Seq[PartitionDirectory])

object DeltaChanges {
  import Reflection.getter

  /**
   * Returns the changes that the commits after `version` made, up to the commit of a pinned listing. Fails if Delta
   * finds that a commit is missing. A commit that changes a file's deletion vector removes the file's path and adds the
   * path again.
   */
  def since(location: FileIndex, version: Long): DeltaChanges = {
    val snapshot = getter(location, "getSnapshot")
    val log = getter(location, "deltaLog")
    val last = getter(snapshot, "version").asInstanceOf[Long]
    val get = log.getClass.getMethods.find { m =>
      m.getName == "getChanges" && m.getParameterTypes.count(_ == classOf[Long]) == 1
    }.get
    val arguments = get.getParameterTypes.toSeq.map { kind =>
      if (kind == classOf[Long]) Long.box(version + 1)
      else if (kind == classOf[Boolean]) Boolean.box(true)
      else None
    }
    val commits = get.invoke(log, arguments: _*).asInstanceOf[Iterator[(Long, scala.collection.Seq[AnyRef])]]
      .takeWhile(_._1 <= last)
    val versions = Seq.newBuilder[Long]
    val files = mutable.LinkedHashMap.empty[String, Option[AnyRef]]
    for ((number, actions) <- commits) {
      versions += number
      def of(name: String) = actions.filter(_.getClass.getSimpleName == name)
      of("RemoveFile").foreach(file => files.put(path(location, file), None))
      of("AddFile").foreach(file => files.put(path(location, file), Some(file)))
    }
    DeltaChanges(versions.result(), files.keys.toSeq, listed(location, snapshot, files.values.flatten.toList))
  }

  private def path(location: FileIndex, file: AnyRef): String =
    location.getClass.getMethod("absolutePath", classOf[String])
      .invoke(location, getter(file, "path")).asInstanceOf[Path].toString

  private def listed(location: FileIndex, snapshot: AnyRef, files: Seq[AnyRef]): Seq[PartitionDirectory] =
    if (files.isEmpty) Nil
    else location.getClass.getClassLoader.loadClass(Delta.listingOfFiles).getConstructors.head.newInstance(
      getter(location, "spark"), "batch", files, getter(location, "deltaLog"),
      getter(location, "path"), snapshot, Boolean.box(false)).asInstanceOf[FileIndex].listFiles(Nil, Nil)
}
