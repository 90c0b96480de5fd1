package org.apache.spark.sql.sieve.catalog

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.execution.command.{AlterTableSetPropertiesCommand, AlterTableUnsetPropertiesCommand}
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.sieve.formats.{ListedTable, SourceTable, TableFormat}

/**
 * Reads and changes the descriptions of tables in their catalogs. A table's catalog is the session catalog or a table
 * format's own catalog.
 */
object CatalogTables {
  /** Returns the table with this name, or fails if there is none. */
  def read(session: Compat.Session, name: TableIdentifier): CatalogTable =
    SourceTable.find(session, name).fold(session.sessionState.catalog.getTableMetadata(name))(_.description)

  def setProperty(session: Compat.Session, name: TableIdentifier, key: String, value: String): Unit =
    SourceTable.find(session, name).fold[Unit](
      AlterTableSetPropertiesCommand(name, Map(key -> value), isView = false).run(session))(_.setProperty(key, value))

  def unsetProperty(session: Compat.Session, name: TableIdentifier, key: String): Unit =
    SourceTable.find(session, name).fold[Unit](AlterTableUnsetPropertiesCommand(
      name, Seq(key), ifExists = true, isView = false).run(session))(_.unsetProperty(key))

  /** All tables of a database. `database` has the form of `TableIdentity.namespace`. */
  def list(session: Compat.Session, database: String): Seq[ListedTable] =
    ofOtherCatalog(session, database).flatMap { case (holder, name) => SourceTable.list(session, holder, name) }
      .getOrElse {
        val catalog = session.sessionState.catalog
        catalog.getTablesByName(catalog.listTables(database, "*", includeLocalTempViews = false)).flatMap { own =>
          ListedTable.of(own.identifier, Some(own))(
            Some(if (TableFormat.isSource(own)) read(session, own.identifier) else own))
        }
      }

  /** The location of a database. `database` has the form of `TableIdentity.namespace`. */
  def databaseLocation(session: Compat.Session, database: String): String =
    ofOtherCatalog(session, database).flatMap { case (holder, name) => SourceTable.databaseLocation(session, holder, name) }
      .getOrElse(TableIdentity.databaseLocation(session, database))

  private def ofOtherCatalog(session: Compat.Session, database: String): Option[(String, String)] =
    database.split("\\.", 2) match {
      case Array(holder, name) if !session.sessionState.catalog.databaseExists(database) => Some((holder, name))
      case _ => None
    }
}
