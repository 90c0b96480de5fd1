package org.apache.spark.sql.sieve.observe

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{ResolvedIdentifier, ResolvedTable}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.{DeleteFromTable, LogicalPlan, MergeIntoTable, RenameTable, UpdateTable}
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.connector.catalog.CatalogPlugin
import org.apache.spark.sql.execution.datasources.{LogicalRelation, SaveIntoDataSourceCommand}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.sieve.catalog.TableIdentity
import org.apache.spark.sql.sieve.formats.TableFormat

/**
 * A table to which a command has written by name or path. `replaced` is true if this table has replaced another table.
 */
final case class WriteEvent(table: Either[Path, TableIdentifier], replaced: Boolean) {
  /** The table in the catalog. Returns None if the catalog has no table with this name or path. */
  def find(session: Compat.Session): Option[TableIdentifier] =
    table.fold(TableFormat.tableAt(_, session), Some(_))

  override def toString: String = table.fold(_.toString, _.toString)
}

object WriteEvent {
  private def classes(folder: String, names: String*): Set[String] =
    names.map(name => s"org.apache.spark.sql.$folder.$name").toSet
  private val replacing = TableFormat.replacingCommands ++
    classes("execution.command", "CreateDataSourceTableAsSelectCommand") ++
    classes("hive.execution", "CreateHiveTableAsSelectCommand")
  private val writers = replacing ++ TableFormat.writingCommands ++
    classes("execution.datasources", "InsertIntoHadoopFsRelationCommand") ++
    classes("hive.execution", "InsertIntoHiveTable") ++
    classes("execution.command", "LoadDataCommand", "AlterTableAddPartitionCommand", "AlterTableDropPartitionCommand",
      "AlterTableRenamePartitionCommand", "RepairTableCommand", "TruncateTableCommand") ++
    classes("execution.streaming.sources", "WriteToMicroBatchDataSourceV1") ++
    classes("catalyst.plans.logical", "AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic",
      "CreateTableAsSelect", "ReplaceTableAsSelect", "ReplaceData", "WriteDelta")

  /**
   * Returns the table to which a command has written. This method recognises the commands of Spark and of table formats
   * by the names of their classes.
   */
  def of(plan: LogicalPlan): Option[WriteEvent] = plan.collectFirst {
    case c: SaveIntoDataSourceCommand if TableFormat.writesByPath(c.dataSource) =>
      CaseInsensitiveMap(c.options).get("path").map(path => WriteEvent(Left(new Path(path)), replaced = false))
    case c if writers(c.getClass.getName) =>
      val replaced = replacing(c.getClass.getName) && c.productIterator.contains(SaveMode.Overwrite)
      val (names, plans) = (c.productIterator.flatMap(named), c.productIterator.flatMap(target))
      (names ++ plans.filter(_ => TableFormat.runs(c))).toSeq.headOption
        .map(t => WriteEvent(Right(t), replaced))
  }.flatten

  /**
   * The former and the new name of a table that a table format's own catalog has renamed. Returns None for any other
   * plan.
   */
  def renamed(plan: LogicalPlan): Option[(TableIdentifier, TableIdentifier)] = plan match {
    case RenameTable(ResolvedTable(catalog, old, _, _), now, false) if TableFormat.ownsCatalog(catalog) =>
      // If the new name has no namespace, the table stays in its former namespace.
      Some((in(catalog, old.namespace, old.name), in(catalog, if (now.size > 1) now.init.toArray else old.namespace, now.last)))
    case _ => None
  }

  private def in(catalog: CatalogPlugin, namespace: Array[String], name: String): TableIdentifier =
    TableIdentifier(name, namespace.lastOption, Some(catalog.name))

  private def named(argument: Any): Option[TableIdentifier] = argument match {
    case name: TableIdentifier => Some(name)
    case table: CatalogTable => Some(table.identifier)
    case Some(table: CatalogTable) => Some(table.identifier)
    case relation: DataSourceV2Relation => named(relation.table)
    case resolved: ResolvedTable => named(resolved.table)
    // A table of any other catalog is ignored, because it can have the same name as an indexed table.
    case created: ResolvedIdentifier if created.catalog.name.equalsIgnoreCase(TableIdentity.sessionCatalog) ||
        TableFormat.ownsCatalog(created.catalog) =>
      Some(in(created.catalog, created.identifier.namespace, created.identifier.name))
    case other: AnyRef => TableFormat.tableIn(other).flatMap(named)
    case _ => None
  }

  private def target(argument: Any): Option[TableIdentifier] = argument match {
    case relation: LogicalRelation => relation.catalogTable.map(_.identifier)
    case update: UpdateTable => update.table.collectFirst(relations).flatMap(target)
    case delete: DeleteFromTable => delete.table.collectFirst(relations).flatMap(target)
    case merge: MergeIntoTable => merge.targetTable.collectFirst(relations).flatMap(target)
    case _ => None
  }
  private val relations: PartialFunction[LogicalPlan, LogicalRelation] = { case r: LogicalRelation => r }
}
