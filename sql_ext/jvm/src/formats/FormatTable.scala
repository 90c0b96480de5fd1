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

  /** What is read in place of a file of which `append` has said so. */
  def appended(number: Int): Listed = appendices(number)

  /** From now on `appended` is what a file has besides the rows that it had before. */
  def append(number: Int, appended: Listed): Unit = synchronized { appendices += number -> appended }

  /**
   * The list from now on. [path, length, time] of each location; a file that has no state of its own is
   * left out; JSON.
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

/** A table as statements see it. A format adds what its log tells; Python calls the methods by name. */
class FormatTable(val files: ListedFiles) {
  protected def relation: HadoopFsRelation = files.relation

  /** The listing of the table as it is now. */
  protected def newest(): FileIndex = {
    relation.location.refresh()
    relation.location
  }

  /** All files of the table now, as `ListedFiles.replace` gives them. */
  def list(): String = files.replace(newest().listFiles(Nil, Nil))

  /** When the table became what was listed, ms since the epoch; below zero where nothing tells. */
  def instant: Long = -1

  /** Options with which a reader reads what was appended to files. */
  def optionsOfAppended: Map[String, String] = Map.empty
}
