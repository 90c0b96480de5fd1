package org.apache.spark.sql.sieve.catalog

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.sieve.base.{Compat, LruMap}
import org.apache.spark.sql.sieve.formats.SourceTable

/**
 * Chooses the session in which a background thread reads a table. In Spark 3.5, a copy-on-write statement of Iceberg
 * fails if the table in the session's cache changes while the statement runs. So the background thread reads the table
 * in a copy of the session, which has a cache of its own.
 */
object ReadingSession {
  /** The copies, each with its application and the settings that define the catalog. */
  private val copies = new LruMap[(String, Map[String, String]), Compat.Session](4)

  def of(session: Compat.Session, table: TableIdentifier): Compat.Session = synchronized {
    val holder = table.catalog.getOrElse(TableIdentity.sessionCatalog)
    if (SourceTable.catalog(session, holder).isEmpty) session
    else {
      val catalog = s"spark.sql.catalog.$holder"
      val settings = session.sessionState.conf.getAllConfs.filter(_._1.startsWith(catalog))
      copies.computeIfAbsent((session.sparkContext.applicationId, settings), _ => session.cloneSession())
    }
  }
}
