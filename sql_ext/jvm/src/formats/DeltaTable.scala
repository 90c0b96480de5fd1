package org.apache.spark.sql.sieve.formats

import org.apache.spark.sql.execution.datasources.FileIndex
import org.apache.spark.sql.sieve.base.Json

/** A Delta table for statements: the commits of its log. */
final class DeltaTable(files: ListedFiles) extends FormatTable(files) {
  private var snapshot = Option.empty[FileIndex]

  override protected def newest(): FileIndex = {
    val pinned = Delta.pinned(relation.location)
    snapshot = Some(pinned)
    pinned
  }

  /** The commit that was listed last, otherwise the newest commit; see `Delta.commit`. */
  def commit: String = Delta.commit(snapshot.getOrElse(Delta.pinned(relation.location)))

  /**
   * The changes to the table's files by the commits after `version`, as JSON; see `DeltaChanges`. The JSON
   * has the numbers of the commits, the touched paths, and the touched files that are in the table, in the
   * form of `list`.
   */
  def listSince(version: Long): String = {
    val changes = DeltaChanges.since(newest(), version)
    Json.write(Seq(changes.versions, changes.touched, files.replace(changes.there)))
  }
}
