package org.apache.spark.sql.sieve

import java.util.{Locale, Properties}
import scala.util.Using
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{ResolvedIdentifier, ResolvedTable}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.{DeleteFromTable, LogicalPlan, MergeIntoTable, UpdateTable}
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.{LogicalRelation, SaveIntoDataSourceCommand}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** A table that a command wrote to, by name or by path; `replaced` if it took the place of another. */
final case class WriteEvent(table: Either[Path, TableIdentifier], replaced: Boolean) {
  /** The table of the catalog; None where the catalog has none there. */
  def find(session: Compat.Session): Option[TableIdentifier] =
    table.fold(WriteEvent.hudiTableAt(_, session), Some(_))

  override def toString: String = table.fold(_.toString, _.toString)
}

object WriteEvent {
  private val writers = Policy.texts("/writing_commands").toSet
  private val replacing = Policy.texts("/replacing_commands").toSet

  /** What a command wrote to; commands are known by the names of their classes, which are Hudi's and Delta's as well. */
  def of(plan: LogicalPlan): Option[WriteEvent] = plan.collectFirst {
    case c: SaveIntoDataSourceCommand if Hudi.isOwn(c.dataSource) =>
      CaseInsensitiveMap(c.options).get("path").map(path => WriteEvent(Left(new Path(path)), replaced = false))
    case c if writers(c.getClass.getName) =>
      val replaced = replacing(c.getClass.getName) && c.productIterator.contains(SaveMode.Overwrite)
      val (names, plans) = (c.productIterator.flatMap(named), c.productIterator.flatMap(target))
      (names ++ plans.filter(_ => Hudi.isCommand(c))).toSeq.headOption
        // A table of another catalog may have the name of an indexed one.
        .filter(_.catalog.forall(_.equalsIgnoreCase(Tables.sessionCatalog)))
        .map(t => WriteEvent(Right(t), replaced))
  }.flatten

  private def named(argument: Any): Option[TableIdentifier] = argument match {
    case name: TableIdentifier => Some(name)
    case table: CatalogTable => Some(table.identifier)
    case Some(table: CatalogTable) => Some(table.identifier)
    case other: AnyRef if other.getClass.getSimpleName == "HoodieCatalogTable" => named(Hudi.call(other, "table"))
    case relation: DataSourceV2Relation => named(relation.table)
    case resolved: ResolvedTable => named(resolved.table)
    case created: ResolvedIdentifier =>
      val name = created.identifier
      Some(TableIdentifier(name.name, name.namespace.lastOption, Some(created.catalog.name)))
    case table: Table if Delta.isTable(table) => named(Hudi.call(table, "catalogTable"))
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

  /**
   * The catalog's table in a folder that was written to by its path: that of the name, and of the
   * database if there is one, in the properties that Hudi keeps in the folder.
   */
  private def hudiTableAt(path: Path, session: Compat.Session): Option[TableIdentifier] = {
    val files = path.getFileSystem(session.sessionState.newHadoopConf())
    val properties = new Properties
    Using.resource(files.open(new Path(path, ".hoodie/hoodie.properties")))(properties.load(_))
    def property(key: String) = Option(properties.getProperty(key)).filter(_.nonEmpty)
    val catalog = session.sessionState.catalog
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
