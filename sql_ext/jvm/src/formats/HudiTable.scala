package org.apache.spark.sql.sieve.formats

import java.util.{List => JList}
import scala.jdk.CollectionConverters._
import org.apache.spark.sql.execution.datasources.FileIndex
import org.apache.spark.sql.sieve.base.Json

/** A Hudi table as statements see it: its timeline, and the log files of its slices. */
final class HudiTable(files: ListedFiles) extends FormatTable(files) {
  private val slices = new FileSlices(relation)

  /** A refreshed one would go on to later commits than its reader, which passes over what these have logged. */
  override protected def newest(): FileIndex = relation.location

  /** All files of some partitions now, as `list` gives them; null in releases that cannot list these alone. */
  def listPartitions(partitions: JList[String]): String =
    Hudi.list(relation.location, partitions.asScala.toSeq).map(files.replace).orNull

  def timeline: String = Hudi.timeline(relation)
  def partitions(number: Int): String = Hudi.partitions(relation, number)
  def client: AnyRef = Hudi.client(relation)

  override def instant: Long = Hudi.completed(relation).getOrElse(-1)

  /** What `FileSlices.states` says of a file slice by its number in the last listing; JSON. */
  def slice(number: Int): String = Json.write((slices.states _).tupled(files(number)))

  /** A reader of one log file's blocks; the log files of a slice are in the order of their names. */
  def logReader(number: Int, k: Int): AnyRef =
    Hudi.logReader(relation, (slices.logs _).tupled(files(number))(k))

  /** From now on a frame reads of an appended file slice nothing but its log files from one on. */
  def append(number: Int, from: Int): Unit = {
    val (values, file) = files(number)
    files.append(number, slices.logsAlone(values, file, from))
  }

  override def optionsOfAppended: Map[String, String] = FileSlices.unmerged
}
