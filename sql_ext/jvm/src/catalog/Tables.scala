package org.apache.spark.sql.sieve

import java.util.{List => JList}
import scala.jdk.CollectionConverters._
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, SubqueryAlias}
import org.apache.spark.sql.execution.datasources.LogicalRelation

/** Tables as statements need them: resolved by Spark in the user's session, with its checks. */
object Tables {
  val sessionCatalog = "spark_catalog"

  def unresolved(name: JList[String]): UnresolvedRelation = UnresolvedRelation(name.asScala.toList)

  def resolve(session: Compat.Session, name: JList[String]): TableAccess =
    new TableAccess(session, name, bare(session.sessionState.executePlan(unresolved(name)).analyzed))

  private def bare(plan: LogicalPlan): LogicalPlan = plan match {
    case SubqueryAlias(_, child) => bare(child)
    // Where a column is CHAR(n), Spark pads it above the table.
    case Project(_, table: LogicalRelation) => table
    case other => other
  }

  /** Which table it is: a name may come to stand for another one. */
  def identity(table: CatalogTable): Map[String, Any] = Map(
    "catalog" -> table.identifier.catalog.getOrElse(sessionCatalog),
    "database" -> table.identifier.database.getOrElse("default"),
    "table" -> table.identifier.table,
    "create_time_ms" -> table.createTime,
    "location" -> table.storage.locationUri.fold("")(new Path(_).toString))

  def databaseLocation(session: Compat.Session, database: String): String = {
    val path = new Path(session.sessionState.catalog.getDatabaseMetadata(database).locationUri)
    path.getFileSystem(session.sessionState.newHadoopConf()).makeQualified(path).toString
  }

  /** The names of all tables and views of a database, temporary ones included; JSON. */
  def names(session: Compat.Session, database: String): String = {
    val catalog = session.sessionState.catalog
    Json.write(
      if (catalog.databaseExists(database)) catalog.listTables(database).map(_.table).distinct else Nil)
  }

  /** All tables of a database with the registrations that they carry; JSON. */
  def list(session: Compat.Session, database: String): String = {
    val catalog = session.sessionState.catalog
    val names = catalog.listTables(database, "*", includeLocalTempViews = false)
    Json.write(catalog.getTablesByName(names).map { table =>
      identity(table) + ("registrations" -> Registry.registrations(table))
    })
  }
}
