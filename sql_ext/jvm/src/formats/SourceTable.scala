package org.apache.spark.sql.sieve.formats

import scala.util.Try
import scala.util.control.NonFatal
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.connector.catalog.{Identifier, SupportsNamespaces, TableCatalog, TableChange}
import org.apache.spark.sql.sieve.base.Compat

/**
 * A table that has its properties in its own catalog, not in Spark's session catalog.
 *
 * @param description the table in the form of the session catalog
 */
final case class SourceTable(catalog: TableCatalog, name: Identifier, description: CatalogTable) {
  def setProperty(key: String, value: String): Unit = change(TableChange.setProperty(key, value))
  def unsetProperty(key: String): Unit = change(TableChange.removeProperty(key))

  /**
   * Changes the table, and then refreshes it in the user's session. The refresh is needed because the statement runs in
   * a copy of the user's session, and each session has its own cache of tables.
   */
  private def change(to: TableChange): Unit = {
    catalog.alterTable(name, to)
    for (user <- SparkSession.getActiveSession; own <- SourceTable.catalog(user.asInstanceOf[Compat.Session], catalog.name))
      TableFormat.describe(own, name)
  }
}

/**
 * An entry in the list of a catalog's tables.
 *
 * @param description the table in the form of the session catalog; None if the catalog has no properties of the table
 * @param problem     the reason why the table's metadata cannot be read; None for a readable table
 */
final case class ListedTable(name: TableIdentifier, description: Option[CatalogTable], problem: Option[String])

object ListedTable {
  /**
   * The entry of a table with the description that `read` returns. If `read` fails, the entry has the description
   * `otherwise` and the error's message.
   */
  def of(name: TableIdentifier, otherwise: Option[CatalogTable])(read: => Option[CatalogTable]): Option[ListedTable] =
    try read.map(found => ListedTable(name, Some(found), None))
    catch { case NonFatal(e) => Some(ListedTable(name, otherwise, Some(String.valueOf(e.getMessage)))) }
}

object SourceTable {
  /**
   * Returns the catalog with this name if the catalog itself stores its tables' properties. Returns None for any other
   * catalog.
   */
  def catalog(session: Compat.Session, name: String): Option[TableCatalog] =
    // At first use, Spark creates the catalog with the settings of the thread's active session.
    Try(session.withActive(session.sessionState.catalogManager.catalog(name))).toOption.collect {
      case own: TableCatalog if TableFormat.ownsCatalog(own) => own
    }

  /** The table with this name, and its catalog. Returns None if the session catalog stores the table's properties. */
  def find(session: Compat.Session, name: TableIdentifier): Option[SourceTable] =
    for {
      own <- catalog(session, name.catalog.getOrElse("spark_catalog"))
      at = Identifier.of(Array(name.database.getOrElse("default")), name.table)
      description <- TableFormat.describe(own, at)
    } yield SourceTable(own, at, description)

  /**
   * The folder of a database in a catalog that itself stores its tables' properties. Returns None if the database is in
   * the session catalog.
   */
  def databaseLocation(session: Compat.Session, catalogName: String, database: String): Option[String] =
    catalog(session, catalogName).collect { case own: SupportsNamespaces => own }.flatMap(own =>
      Option(own.loadNamespaceMetadata(Array(database)).get("location"))).map { location =>
      val path = new Path(location)
      path.getFileSystem(session.sessionState.newHadoopConf()).makeQualified(path).toString
    }

  /**
   * The tables of a database in a catalog that itself stores its tables' properties. Returns None if the database is in
   * the session catalog.
   */
  def list(session: Compat.Session, catalogName: String, database: String): Option[Seq[ListedTable]] =
    catalog(session, catalogName).map(own =>
      own.listTables(Array(database)).toSeq.flatMap { listed =>
        val name = TableIdentifier(listed.name, Some(database), Some(catalogName))
        ListedTable.of(name, None)(find(session, name).map(_.description))
      })
}
