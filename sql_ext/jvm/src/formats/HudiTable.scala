package org.apache.spark.sql.sieve.formats

import java.util.{List => JList}
import scala.jdk.CollectionConverters._
import org.apache.spark.sql.execution.datasources.FileIndex
import org.apache.spark.sql.sieve.base.Json

/** A Hudi table for statements: its timeline, and the log files of its slices. */
final class HudiTable(files: ListedFiles) extends FormatTable(files) {
  private val slices = new FileSlices(relation)

  /**
   * The relation's own listing. A refreshed listing would include later commits than its reader, which
   * ignores log entries of later commits.
   */
  override protected def newest(): FileIndex = relation.location

  /**
   * All current files of some partitions, in the form of `list`; null in releases that cannot list
   * single partitions.
   */
  def listPartitions(partitions: JList[String]): String =
    Hudi.list(relation.location, partitions.asScala.toSeq).map(files.replace).orNull

  def timeline: String = Hudi.timeline(relation)
  def partitions(number: Int): String = Hudi.partitions(relation, number)
  def client: AnyRef = Hudi.client(relation)

  override def instant: Long = Hudi.completed(relation).getOrElse(-1)

  /**
   * The states of a file slice, given its number in the last listing, as JSON; see `FileSlices.states`.
   */
  def slice(number: Int): String = Json.write((slices.states _).tupled(files(number)))

  /** A reader of the blocks of one log file; the log files of a slice are sorted by name. */
  def logReader(number: Int, k: Int): AnyRef =
    Hudi.logReader(relation, (slices.logs _).tupled(files(number))(k))

  /** Makes data frames read only the log files from number `from` on of an appended file slice. */
  def append(number: Int, from: Int): Unit = {
    val (values, file) = files(number)
    files.append(number, slices.logsAlone(values, file, from))
  }

  override def optionsOfAppended: Map[String, String] = FileSlices.unmerged
}
