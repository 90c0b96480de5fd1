package org.apache.spark.sql.sieve.statements

import java.util.{List => JList}
import scala.jdk.CollectionConverters._
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, SubqueryAlias}
import org.apache.spark.sql.connector.catalog.{CatalogManager, LookupCatalog}
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.sieve.base.{Compat, Json}
import org.apache.spark.sql.sieve.catalog.{CatalogTables, Registry, TableIdentity}
import org.apache.spark.sql.sieve.formats.{SourceTable, TableFormat}

/** Finds the tables of statements. Spark resolves a table in the user's session, with all of Spark's checks. */
object Tables {
  def resolve(session: Compat.Session, name: JList[String]): TableHandle =
    new TableHandle(session, name, files(session, bare(session.sessionState.executePlan(UnresolvedRelation(name.asScala.toList)).analyzed)))

  /** Returns a DataSource V2 table as a relation of the table's files. */
  private def files(session: Compat.Session, plan: LogicalPlan): LogicalPlan = plan match {
    case source: DataSourceV2Relation => TableFormat.named(source, session).getOrElse(source)
    case other => other
  }

  /**
   * A table as the catalog describes it. Returns null for a view, and for a name in a catalog that Sieve does not
   * support.
   */
  def registered(session: Compat.Session, name: JList[String]): RegisteredTable =
    find(session, name.asScala.toSeq).map(new RegisteredTable(session, name, _)).orNull

  /**
   * The description of a table in its catalog. Returns None for a view. Fails if the catalog has no table with this
   * name.
   */
  def find(session: Compat.Session, parts: Seq[String]): Option[CatalogTable] = {
    val (catalog, names) = (session.sessionState.catalog, new Names(session.sessionState.catalogManager))
    parts match {
      case _ if catalog.isTempView(parts) => None
      case names.CatalogAndIdentifier(holder, name)
          if name.namespace.length == 1 && (holder.name == TableIdentity.sessionCatalog || TableFormat.ownsCatalog(holder)) =>
        Some(CatalogTables.read(session, TableIdentifier(name.name, Some(name.namespace.head), Some(holder.name))))
          .filter(_.tableType != CatalogTableType.VIEW)
      case _ => None
    }
  }

  private class Names(override protected val catalogManager: CatalogManager) extends LookupCatalog

  private def bare(plan: LogicalPlan): LogicalPlan = plan match {
    case SubqueryAlias(_, child) => bare(child)
    // For CHAR(n) columns, Spark adds a projection above the table, which pads the values.
    case Project(_, table: LogicalRelation) => table
    case other => other
  }

  /** True if a catalog itself stores the properties of its tables, so that these tables can have indexes. */
  def ownsCatalog(session: Compat.Session, name: String): Boolean = SourceTable.catalog(session, name).nonEmpty

  def databaseLocation(session: Compat.Session, database: String): String =
    CatalogTables.databaseLocation(session, database)

  /** The names of all tables and views of a database, including temporary views, as JSON. */
  def names(session: Compat.Session, database: String): String = {
    val catalog = session.sessionState.catalog
    Json.write(
      if (catalog.databaseExists(database)) catalog.listTables(database).map(_.table).distinct else Nil)
  }

  /**
   * All tables of a database, as JSON. The JSON contains each table's identifying attributes and known registrations.
   * If a table's metadata cannot be read, the JSON also contains the reason.
   */
  def list(session: Compat.Session, database: String): String =
    Json.write(CatalogTables.list(session, database).map { listed =>
      Map("table" -> listed.name.table) ++ listed.problem.map("problem" -> _) ++ listed.description.toSeq.flatMap(table =>
        TableIdentity.of(table) + ("registrations" -> Registry.registrations(table)))
    })
}
