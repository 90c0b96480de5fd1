package org.apache.spark.sql.sieve.catalog

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.sieve.formats.SourceTable

/**
 * Chooses the session in which a background thread reads a table. In Spark 3.5, a copy-on-write statement of Iceberg
 * fails if the table in the session's cache changes while the statement runs. So the background thread reads the table
 * in a copy of the session, which has a cache of its own.
 */
object ReadingSession {
  private var copy: Option[Compat.Session] = None

  def of(session: Compat.Session, table: TableIdentifier): Compat.Session = synchronized {
    val holder = table.catalog.getOrElse(TableIdentity.sessionCatalog)
    def holds(other: Compat.Session) = SourceTable.catalog(other, holder).nonEmpty
    if (!holds(session)) session
    else {
      // The user may have defined the catalog after the session was last copied.
      if (!copy.exists(own => (own.sparkContext eq session.sparkContext) && holds(own))) copy = Some(session.cloneSession())
      copy.get
    }
  }
}
