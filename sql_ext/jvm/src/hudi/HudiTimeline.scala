package org.apache.spark.sql.sieve

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, PartitionDirectory}

/** What commits have done to a Hudi table since one of them, by partitions, as its timeline tells. */
object HudiChanges {
  import Hudi.call

  // What these wrote or replaced, their metadata tell; rows that others bring or take they do not.
  private val telling = Set("commit", "deltacommit", "replacecommit")
  private val harmless = Set("clean", "savepoint", "indexing")
  private val undoing = Set("rollback", "restore")

  // Beyond, Hudi's own listing of all is not slower: it works in parallel or by its metadata table.
  private val mostCommits = 50
  private val mostPartitions = 100

  // Clocks of the store and of writers may be so far apart, in ms.
  private val skew = 60000L

  /**
   * The partitions written to since the commit that was complete at a time, in ms since the epoch.
   * None where the timeline does not tell for certain: it does not have that commit any more, or
   * something else has happened, or the table has no partitions.
   */
  def since(relation: HadoopFsRelation, instant: Long): Option[Set[String]] = {
    val timeline = call(Hudi.client(relation), "getActiveTimeline")
    val (done, pending) = instants(timeline).partition(call(_, "isCompleted") == true)
    val timed = done.map(one => one -> Hudi.completion(relation, one))
    val own = timed.filter { case (one, time) => time.contains(instant) && telling(action(one)) }
    val later = timed.collect { case (one, time) if time.forall(_ > instant) => one }
      .filterNot(one => harmless(action(one)))
    val known = own.size == 1 && later.size <= mostCommits &&
      later.forall(one => telling(action(one))) && !pending.exists(one => undoing(action(one))) &&
      !archivedSince(relation, instant - skew)
    if (!known) None
    else Some(later.flatMap(partitions(_, timeline)).toSet)
      .filterNot(found => found.contains("") || found.size > mostPartitions)
  }

  /**
   * Whether commits may have been taken back after an instant. Some releases do it by a note in a log
   * file, which readers of any instant heed. What happened before the oldest commit of the active
   * timeline is not known; a savepoint may keep one there while later ones are archived.
   */
  def takenBack(relation: HadoopFsRelation, instant: String): Boolean = {
    val all = instants(call(Hudi.client(relation), "getActiveTimeline"))
    val kept = all.filter(action(_) == "savepoint").map(call(_, "requestedTime").toString).toSet
    val reaches = all.filter(one => telling(action(one)))
      .map(call(_, "requestedTime").toString).exists(one => one <= instant && !kept(one))
    !reaches || all.exists(one => undoing(action(one)) &&
      Option(call(one, "getCompletionTime")).forall(_.toString > instant))
  }

  private def instants(timeline: AnyRef): Seq[AnyRef] =
    call(timeline, "getInstants").asInstanceOf[java.util.List[AnyRef]].asScala.toSeq

  /**
   * Whether commits have been archived since. Hudi archives by the time at which they were asked
   * for, so one that took long may be gone while an earlier one is still in the active timeline.
   */
  private def archivedSince(relation: HadoopFsRelation, time: Long): Boolean = {
    val folder = new Path(call(Hudi.client(relation), "getArchivePath").toString)
    val system = folder.getFileSystem(relation.sparkSession.sessionState.newHadoopConf())
    system.exists(folder) && system.listStatus(folder).exists(_.getModificationTime >= time)
  }

  private def action(instant: AnyRef): String = call(instant, "getAction").toString

  private def partitions(instant: AnyRef, timeline: AnyRef): Seq[String] = {
    val metadata = instant.getClass.getClassLoader
      .loadClass("org.apache.hudi.common.table.timeline.TimelineUtils").getMethods
      .find(_.getName == "getCommitMetadata").get.invoke(null, instant, timeline)
    def keys(member: String) =
      call(metadata, member).asInstanceOf[java.util.Map[String, _]].keySet.asScala.toSeq
    val replaced =
      if (action(instant) == "replacecommit") keys("getPartitionToReplaceFileIds") else Nil
    keys("getPartitionToWriteStats") ++ replaced
  }

  /** The folder of a partition, as the paths of its files have it. */
  def folder(relation: HadoopFsRelation, partition: String): Path =
    new Path(s"${call(Hudi.client(relation), "getBasePath")}/$partition")

  /** What `listFiles` would give of some partitions alone; None in releases that have no such way. */
  def list(location: FileIndex, partitions: Set[String]): Option[Seq[PartitionDirectory]] = for {
    path <- method(location.getClass, "convertToPartitionPath")
    slices <- method(location.getClass, "getInputFileSlices")
    prepare <- method(location.getClass, "prepareFileSlices")
  } yield {
    val wanted = partitions.toSeq.map(path.invoke(location, _))
    val kind = slices.getParameterTypes.head.getComponentType
    val array = java.lang.reflect.Array.newInstance(kind, wanted.size).asInstanceOf[Array[AnyRef]]
    wanted.copyToArray(array)
    val found = slices.invoke(location, array)
      .asInstanceOf[java.util.Map[AnyRef, java.util.List[AnyRef]]].asScala.toSeq
    val rows = for {
      (partition, inside) <- found
      slice <- inside.asScala if call(slice, "isEmpty") == false
    } yield (InternalRow.fromSeq(values(partition)), slice)
    prepare.invoke(location, rows).asInstanceOf[scala.collection.Seq[PartitionDirectory]].toSeq
  }

  // A method tells them from 1.2 on.
  private def values(partition: AnyRef): Seq[Any] = {
    val field = partition.getClass.getDeclaredField("values")
    field.setAccessible(true)
    field.get(partition).asInstanceOf[Array[Any]].toSeq
  }

  private def method(of: Class[_], name: String): Option[java.lang.reflect.Method] =
    Iterator.iterate[Class[_]](of)(_.getSuperclass).takeWhile(_ != null)
      .flatMap(_.getDeclaredMethods).find(m => m.getName == name && m.getParameterCount == 1)
      .map { m => m.setAccessible(true); m }
}
