package org.apache.spark.sql.sieve.formats

import java.util.{List => JList}
import scala.jdk.CollectionConverters._
import org.apache.spark.sql.sieve.base.Json

/** An Iceberg table for SIEVE statements, which read the table's current snapshot. */
final class IcebergTable(files: ListedFiles) extends FormatTable(files) {
  private val own = relation.location.asInstanceOf[IcebergFiles]
  private val api = IcebergApi.of(own.table)
  private val snapshot = IcebergScans.snapshot(own.scan)

  /** The commit time of the current snapshot, in ms since the epoch. Negative for a table without a snapshot. */
  override def instant: Long = snapshot.fold(-1L)(Iceberg.committed)

  /**
   * The table's id and the sequence number of the current snapshot, as JSON. Returns null for a table without a
   * snapshot, and for a snapshot of format version 1, because such a snapshot has no sequence number.
   */
  def commit: String = snapshot.map(sequenceNumber).filter(_ > 0).map { number =>
    Json.write(Map("table" -> Reflection.call(own.iceberg, "uuid").toString, "version" -> number))
  }.orNull

  /**
   * Compares the current snapshot with the snapshot that has this sequence number and commit time, in ms since the
   * epoch. The snapshots need not be on the same branch: a rollback, for example, returns to an earlier snapshot. This
   * method considers only manifests that belong to exactly one of the two snapshots. Returns JSON with the paths of all
   * data files in these manifests, and with a list of the data files that the current snapshot contains. Each file in
   * the list has the same form as in the result of `list`. Returns null if the table no longer has the other snapshot.
   */
  def listSince(number: Long, instant: Long): String = {
    val known = Reflection.call(own.iceberg, "snapshots").asInstanceOf[java.lang.Iterable[AnyRef]].asScala.toSeq
    def is(one: AnyRef) = sequenceNumber(one) == number && Iceberg.committed(one) == instant
    (known.filter(is), snapshot) match {
      case (Seq(earlier), Some(current)) =>
        val (before, now) = (manifests(earlier), manifests(current))
        val there = IcebergFiles.listed(own.iceberg, tasks(now -- before.keys))
        val gone = IcebergFiles.listed(own.iceberg, tasks(before -- now.keys))
        val touched = Seq(there, gone).flatMap(_.files.map(_.getPath.toString))
        Json.write(Seq(touched, files.replace(Seq(there))))
      case _ => null
    }
  }

  private def sequenceNumber(snapshot: AnyRef): Long = Reflection.call(snapshot, "sequenceNumber").asInstanceOf[Long]
  private def manifests(snapshot: AnyRef): Map[String, AnyRef] =
    Reflection.call(snapshot, "dataManifests", Reflection.call(own.iceberg, "io")).asInstanceOf[JList[AnyRef]].asScala
      .map(one => Reflection.call(one, "path").toString -> one).toMap
  private def tasks(manifests: Map[String, AnyRef]): Seq[AnyRef] =
    api.tasksIn(manifests.values.toSeq, own.iceberg, own.schema)
}
