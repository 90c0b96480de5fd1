package org.apache.spark.sql.sieve

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.command._
import org.apache.spark.sql.execution.datasources.{InsertIntoHadoopFsRelationCommand, SaveIntoDataSourceCommand}
import org.apache.spark.sql.hive.execution.{CreateHiveTableAsSelectCommand, InsertIntoHiveTable}

/** A table that a command wrote to, by name or by path, and whether it took the place of another. */
final case class Written(table: Either[Path, TableIdentifier], anew: Boolean)

object Written {
  def by(command: LogicalPlan): Option[Written] = command.collectFirst(named).flatten

  private val named: PartialFunction[LogicalPlan, Option[Written]] = {
    case c: InsertIntoHadoopFsRelationCommand => c.catalogTable.map(t => to(t.identifier))
    case c: InsertIntoHiveTable => Some(to(c.table.identifier))
    case c: CreateDataSourceTableAsSelectCommand =>
      Some(to(c.table.identifier, c.mode == SaveMode.Overwrite))
    case c: CreateHiveTableAsSelectCommand =>
      Some(to(c.tableDesc.identifier, c.mode == SaveMode.Overwrite))
    case c: LoadDataCommand => Some(to(c.table))
    case c: AlterTableAddPartitionCommand => Some(to(c.tableName))
    case c: AlterTableDropPartitionCommand => Some(to(c.tableName))
    case c: AlterTableRenamePartitionCommand => Some(to(c.tableName))
    case c: RepairTableCommand => Some(to(c.tableName))
    case c: TruncateTableCommand => Some(to(c.tableName))
    case c: SaveIntoDataSourceCommand if Hudi.isOwn(c.dataSource) =>
      CaseInsensitiveMap(c.options).get("path").map(path => Written(Left(new Path(path)), anew = false))
    case c if HudiCommands.isWriter(c) => HudiCommands.table(c).map(to(_, HudiCommands.isOverwrite(c)))
  }

  private def to(table: TableIdentifier, anew: Boolean = false) = Written(Right(table), anew)

  /** The table of the catalog that was written to; None where the catalog has none there. */
  def find(written: Written, session: Compat.Session): Option[TableIdentifier] =
    written.table.fold(HudiCommands.tableAt(_, session), Some(_))
}
