package org.apache.spark.sql.sieve.formats

import org.apache.spark.sql.execution.datasources.FileIndex
import org.apache.spark.sql.sieve.base.Json

/** A Delta table for SIEVE statements, with access to the commits in its log. */
final class DeltaTable(files: ListedFiles) extends FormatTable(files) {
  private var snapshot = Option.empty[FileIndex]

  override protected def newest(): FileIndex = {
    val pinned = Delta.pinned(relation.location)
    snapshot = Some(pinned)
    pinned
  }

  /** Returns the commit of the last listing or, before the first listing, the newest commit. See `Delta.commit`. */
  def commit: String = Delta.commit(snapshot.getOrElse(Delta.pinned(relation.location)))

  /**
   * Returns the changes to the table's files by the commits after `version`, as JSON. The JSON has the members of
   * `DeltaChanges`: the numbers of the commits, the touched paths, and the touched files that are in the table. Each
   * file has the same form as in the result of `list`.
   */
  def listSince(version: Long): String = {
    val changes = DeltaChanges.since(newest(), version)
    Json.write(Seq(changes.versions, changes.touched, files.replace(changes.there)))
  }
}
