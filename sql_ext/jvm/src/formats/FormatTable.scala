package org.apache.spark.sql.sieve.formats

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.sieve.base.Json

/** The files that a statement has listed in a table. Each file is identified by its number in the list. */
final class ListedFiles(val relation: HadoopFsRelation) {
  private type Listed = (InternalRow, FileStatusWithMetadata)
  val locations: Locations = TableFormat.of(relation).locations(relation)
  private var files = IndexedSeq.empty[Listed]
  private var appendices = Map.empty[Int, Listed]

  def apply(number: Int): Listed = files(number)

  /** Returns the file that `append` has registered in place of the file with this number. */
  def appended(number: Int): Listed = appendices(number)

  /**
   * Registers the file that `appended` returns. The returned file contains only the rows that were added after Sieve
   * had last read the original file.
   */
  def append(number: Int, appended: Listed): Unit = synchronized { appendices += number -> appended }

  /**
   * Replaces the list of files. Returns [path, length, time] of each file or file slice as JSON. The list omits files
   * without a known state, and files from which readers return only some rows.
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
 * A table for SIEVE statements. A subclass adds information from the log of its table format. Python calls the
 * methods by name.
 */
class FormatTable(val files: ListedFiles) {
  protected def relation: HadoopFsRelation = files.relation

  /** Returns a listing of the table in its current state. */
  protected def newest(): FileIndex = {
    relation.location.refresh()
    relation.location
  }

  /** Lists all current files of the table. The result has the form of `ListedFiles.replace`. */
  def list(): String = files.replace(newest().listFiles(Nil, Nil))

  /** The time at which the table reached the listed state, in ms since the epoch. Negative if the time is unknown. */
  def instant: Long = -1

  /** The options with which a reader reads only the rows that were appended to files. */
  def optionsOfAppended: Map[String, String] = Map.empty
}
