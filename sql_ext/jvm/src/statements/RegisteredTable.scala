package org.apache.spark.sql.sieve.statements

import java.util.{List => JList}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.sieve.base.{Compat, Json, SieveException}
import org.apache.spark.sql.sieve.catalog.{CatalogTables, DeclaredIndexes, Registry, TableIdentity}

/**
 * A table as the catalog describes it, with the properties that register indexes. This object neither lists nor reads
 * files, so users can show, disable and drop an index even if its table cannot be read.
 */
class RegisteredTable(session: Compat.Session, name: JList[String], found: => CatalogTable) {
  lazy val table: CatalogTable = found

  /**
   * The table's identifying attributes, provider, database location, registered indexes and declared indexes, as JSON.
   */
  def registration: String = Json.write(registered)

  protected def registered: Map[String, Any] = TableIdentity.of(table) ++ Map(
    "provider" -> table.provider,
    "database_location" -> CatalogTables.databaseLocation(session, TableIdentity.namespace(table.identifier)),
    "registrations" -> Registry.registrations(table), "declared" -> DeclaredIndexes.by(table))

  /** Sets a property of the table. Fails if another table has taken the name since the statement read the catalog. */
  def setProperty(key: String, value: String): Unit = {
    if (TableIdentity.of(CatalogTables.read(session, table.identifier)) !=
        TableIdentity.of(table)) throw new SieveException(
      "SIEVE_TABLE_MOVED", s"table ${String.join(".", name)} was created again or moved meanwhile, so its " +
        "index was not registered; run the statement again", state = "40001")
    CatalogTables.setProperty(session, table.identifier, key, value)
    publish()
  }

  def unsetProperty(key: String): Unit = {
    CatalogTables.unsetProperty(session, table.identifier, key)
    publish()
  }

  /**
   * Reads the table's current registrations from the metastore, and publishes the registrations to every session.
   * Returns the registrations as JSON.
   */
  def publish(): String = Json.write(Registry.registrations(Registry.reload(session, table.identifier)))
}
