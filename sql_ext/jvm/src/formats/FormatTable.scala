package org.apache.spark.sql.sieve.formats

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.sieve.base.Json

/** The files of a table that a statement has listed, by their numbers in the list. */
final class ListedFiles(val relation: HadoopFsRelation) {
  private type Listed = (InternalRow, FileStatusWithMetadata)
  val locations: Locations = TableFormat.of(relation).locations(relation)
  private var files = IndexedSeq.empty[Listed]
  private var appendices = Map.empty[Int, Listed]

  def apply(number: Int): Listed = files(number)

  /** The file to read instead of a file for which `append` was called. */
  def appended(number: Int): Listed = appendices(number)

  /** Makes `appended` return the file with the rows that were added to a file after its earlier reading. */
  def append(number: Int, appended: Listed): Unit = synchronized { appendices += number -> appended }

  /**
   * Replaces the list. Returns [path, length, time] of each location as JSON, without files that have
   * no state of their own.
   */
  def replace(directories: Seq[PartitionDirectory]): String = {
    appendices = Map.empty
    val found = for {
      directory <- directories
      file <- directory.files
      location <- locations.of(directory.values, file)
      now <- location.shown if location.written.isEmpty
    } yield Seq(location.path.toString, now.length, now.modified) -> (directory.values, file)
    files = found.map(_._2).toIndexedSeq
    Json.write(found.map(_._1))
  }
}

/**
 * A table for statements. A subclass adds the information in the log of its format. Python calls the
 * methods by name.
 */
class FormatTable(val files: ListedFiles) {
  protected def relation: HadoopFsRelation = files.relation

  /** The listing of the table in its current state. */
  protected def newest(): FileIndex = {
    relation.location.refresh()
    relation.location
  }

  /** All current files of the table, in the form of `ListedFiles.replace`. */
  def list(): String = files.replace(newest().listFiles(Nil, Nil))

  /**
   * The time since which the table has had the listed state, ms since the epoch; negative if unknown.
   */
  def instant: Long = -1

  /** The options with which a reader reads the rows that were appended to files. */
  def optionsOfAppended: Map[String, String] = Map.empty
}
