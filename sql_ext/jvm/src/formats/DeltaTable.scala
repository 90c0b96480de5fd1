package org.apache.spark.sql.sieve.formats

import org.apache.spark.sql.execution.datasources.FileIndex
import org.apache.spark.sql.sieve.base.Json

/** A Delta table as statements see it: the commits of its log. */
final class DeltaTable(files: ListedFiles) extends FormatTable(files) {
  private var snapshot = Option.empty[FileIndex]

  override protected def newest(): FileIndex = {
    val pinned = Delta.pinned(relation.location)
    snapshot = Some(pinned)
    pinned
  }

  /** The commit that was listed last, or else the newest; see `Delta.commit`. */
  def commit: String = Delta.commit(snapshot.getOrElse(Delta.pinned(relation.location)))

  /**
   * What commits after one have made of the table's files, see `DeltaChanges`: numbers of the commits,
   * touched paths, and the table's files among these as `list` gives them; JSON.
   */
  def listSince(version: Long): String = {
    val changes = DeltaChanges.since(newest(), version)
    Json.write(Seq(changes.versions, changes.touched, files.replace(changes.there)))
  }
}
