package org.apache.spark.sql.sieve.formats

import java.util.{List => JList}
import scala.jdk.CollectionConverters._
import org.apache.spark.sql.execution.datasources.FileIndex
import org.apache.spark.sql.sieve.base.Json

/** A Hudi table for SIEVE statements, with access to its timeline and to the log files of its slices. */
final class HudiTable(files: ListedFiles) extends FormatTable(files) {
  private val slices = new HudiSlices(relation)

  /**
   * Returns the relation's own listing, because a refreshed listing could include commits that the relation's reader
   * ignores.
   */
  override protected def newest(): FileIndex = relation.location

  /**
   * Returns all current files of some partitions, in the same form as `list`. Returns null if this release of Hudi
   * cannot list single partitions.
   */
  def listPartitions(partitions: JList[String]): String =
    Hudi.list(relation.location, partitions.asScala.toSeq).map(files.replace).orNull

  def timeline: String = Hudi.timeline(relation)
  def partitions(number: Int): String = Hudi.partitions(relation, number)
  def client: AnyRef = Hudi.client(relation)

  override def instant: Long = Hudi.completed(relation).getOrElse(-1)

  /**
   * Returns, as JSON, the states of the file slice that has this number in the last listing. See `HudiSlices.states`.
   */
  def slice(number: Int): String = Json.write((slices.states _).tupled(files(number)))

  /**
   * Opens a reader of the blocks in the `k`-th log file of a slice. The slice's log files are sorted by name. `number`
   * is the slice's number in the last listing.
   */
  def logReader(number: Int, k: Int): AnyRef =
    Hudi.logReader(relation, (slices.logs _).tupled(files(number))(k))

  /**
   * Registers the log files of a file slice from position `from` on. A data frame can then read only the rows that were
   * added to the slice.
   */
  def append(number: Int, from: Int): Unit = {
    val (values, file) = files(number)
    files.append(number, slices.logsAlone(values, file, from))
  }

  override def optionsOfAppended: Map[String, String] = HudiSlices.unmerged
}
