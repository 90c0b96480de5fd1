package org.apache.spark.sql.sieve.catalog

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.sieve.base.Compat

/** Identifies tables, and finds the locations of their databases. */
object TableIdentity {
  val sessionCatalog = "spark_catalog"

  /** The attributes that distinguish a table from a later table of the same name. */
  def of(table: CatalogTable): Map[String, Any] = Map(
    "catalog" -> table.identifier.catalog.getOrElse(sessionCatalog),
    "database" -> table.identifier.database.getOrElse("default"),
    "table" -> table.identifier.table,
    "create_time_ms" -> table.createTime,
    "location" -> table.storage.locationUri.fold("")(new Path(_).toString))

  /**
   * The name of a table's database. If the table is not in the session catalog, the name begins with the name of the
   * table's catalog and a dot.
   */
  def namespace(name: TableIdentifier): String = {
    val database = name.database.getOrElse("default")
    name.catalog.filterNot(_ == sessionCatalog).fold(database)(holder => s"$holder.$database")
  }

  def databaseLocation(session: Compat.Session, database: String): String = {
    val path = new Path(session.sessionState.catalog.getDatabaseMetadata(database).locationUri)
    path.getFileSystem(session.sessionState.newHadoopConf()).makeQualified(path).toString
  }
}
