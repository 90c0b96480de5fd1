package org.apache.spark.sql.sieve

import java.util.{Locale, Properties}

import scala.util.Using

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.{DeleteFromTable, LogicalPlan, MergeIntoTable, UpdateTable}
import org.apache.spark.sql.execution.datasources.LogicalRelation

/** What Hudi runs in the place of Spark's commands: of its own classes, which releases change. */
object HudiCommands {
  private val writers = Set(
    "InsertIntoHoodieTableCommand", "UpdateHoodieTableCommand", "DeleteHoodieTableCommand",
    "MergeIntoHoodieTableCommand", "CreateHoodieTableAsSelectCommand",
    "TruncateHoodieTableCommand", "AlterHoodieTableDropPartitionCommand",
    "CompactionHoodieTableCommand")

  def isWriter(plan: LogicalPlan): Boolean =
    plan.getClass.getName.startsWith("org.apache.spark.sql.hudi.command.") &&
      writers(plan.getClass.getSimpleName)

  /** Whether a writer makes a table in the place of one that was dropped for it. */
  def isOverwrite(command: LogicalPlan): Boolean = command.productIterator.contains(SaveMode.Overwrite)

  /** The table that a writer's arguments name, in whatever form. */
  def table(command: LogicalPlan): Option[TableIdentifier] =
    command.productIterator.map(named).collectFirst { case Some(table) => table }

  private def named(argument: Any): Option[TableIdentifier] = argument match {
    case name: TableIdentifier => Some(name)
    case table: CatalogTable => Some(table.identifier)
    case relation: LogicalRelation => relation.catalogTable.map(_.identifier)
    case update: UpdateTable => target(update.table)
    case delete: DeleteFromTable => target(delete.table)
    case merge: MergeIntoTable => target(merge.targetTable)
    case other: AnyRef if other.getClass.getSimpleName == "HoodieCatalogTable" =>
      named(Hudi.call(other, "table"))
    case _ => None
  }

  private def target(plan: LogicalPlan): Option[TableIdentifier] =
    plan.collectFirst { case relation: LogicalRelation => named(relation) }.flatten

  /**
   * The catalog's table in a folder that was written to by its path: that of the name, and of the
   * database if it says one, which Hudi keeps in the folder.
   */
  def tableAt(path: Path, session: Compat.Session): Option[TableIdentifier] = {
    val files = path.getFileSystem(session.sessionState.newHadoopConf())
    val told = new Properties
    Using.resource(files.open(new Path(path, ".hoodie/hoodie.properties")))(told.load(_))
    val catalog = session.sessionState.catalog
    def property(key: String) = Option(told.getProperty(key)).filter(_.nonEmpty)
    for {
      name <- property("hoodie.table.name").map(_.toLowerCase(Locale.ROOT))
      database = property("hoodie.database.name").getOrElse(catalog.getCurrentDatabase)
      identifier = TableIdentifier(name, Some(database))
      if catalog.databaseExists(database) && catalog.tableExists(identifier)
      location <- catalog.getTableMetadata(identifier).storage.locationUri
      if files.makeQualified(new Path(location)) == files.makeQualified(path)
    } yield identifier
  }
}
