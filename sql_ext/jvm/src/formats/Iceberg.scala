package org.apache.spark.sql.sieve.formats

import java.util.UUID
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogStorageFormat, CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.expressions.{Alias, AttributeReference, MonotonicallyIncreasingID}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, SupportsRead, Table, TableCatalog}
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.connector.write.RowLevelOperationTable
import org.apache.spark.sql.execution.datasources.{FileIndex, FileStatusWithMetadata, HadoopFsRelation, LogicalRelation, PartitionDirectory}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation}
import org.apache.spark.sql.sieve.base.{Compat, OnceLogging}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Support for Iceberg tables. Spark reads these tables through the DataSource V2 interface. So a relation of this
 * format only lists the data files of a scan (`IcebergFiles`), and Iceberg reads the files (`IcebergScans`).
 */
object Iceberg extends TableFormat with OnceLogging {
  private val table = s"${IcebergApi.root}.spark.source.SparkTable"
  private val catalogs = Set("SparkCatalog", "SparkSessionCatalog").map(name => s"${IcebergApi.root}.spark.$name")

  override def owns(location: FileIndex): Boolean = location.isInstanceOf[IcebergFiles]
  private def files(relation: HadoopFsRelation): IcebergFiles = (relation.location match {
    case listing: RangeListing => listing.delegate
    case own => own
  }).asInstanceOf[IcebergFiles]

  // -- files and columns ------------------------------------------------------------------------

  override def locations(relation: HadoopFsRelation): Locations = IcebergFiles.ByTask
  override def keepsStatuses: Boolean = true
  override def table(files: ListedFiles): FormatTable = new IcebergTable(files)
  override def isAsOf(relation: HadoopFsRelation): Boolean = asOf(relation).nonEmpty
  override def asOf(relation: HadoopFsRelation): Option[Long] = files(relation).asOf

  override def hasPartitionsByPath: Boolean = false
  override def stored(relation: HadoopFsRelation): Seq[String] => Seq[String] = files(relation).columns.stored
  override def columns(relation: HadoopFsRelation): StructType = files(relation).types
  override def partitionColumns(relation: HadoopFsRelation): Seq[String] = files(relation).columns.constantNames

  /**
   * Iceberg's readers depend on the table and on no setting of Spark. In files without column ids, readers find columns
   * by name.
   */
  override def reader(relation: HadoopFsRelation): Option[Map[String, String]] = {
    val own = files(relation)
    val mapping = properties(own.iceberg).get("schema.name-mapping.default").map("mapping" -> _)
    Some(Map("format" -> "iceberg", "schema" -> own.columns.byId.json, "partitions" -> new StructType().json) ++ mapping)
  }

  /** The current snapshot of a table object of Iceberg's library. */
  def current(iceberg: AnyRef): Option[AnyRef] = Option(Reflection.call(iceberg, "currentSnapshot"))
  def committed(snapshot: AnyRef): Long = Reflection.call(snapshot, "timestampMillis").asInstanceOf[Long]
  private def properties(iceberg: AnyRef): Map[String, String] =
    Reflection.call(iceberg, "properties").asInstanceOf[java.util.Map[String, String]].asScala.toMap

  // -- scans ------------------------------------------------------------------------------------

  override def scanned(of: Table, options: CaseInsensitiveStringMap, scan: Scan, output: Seq[AttributeReference],
      session: Compat.Session): Option[LogicalRelation] =
    if (IcebergScans.isOfQuery(scan)) files(of, options, scan, output, session) else None

  override def replaced(of: Table, options: CaseInsensitiveStringMap, scan: Scan, output: Seq[AttributeReference],
      session: Compat.Session): Option[LogicalRelation] =
    if (IcebergScans.isOfReplacement(scan)) files(of, options, scan, output, session) else None

  private def files(of: Table, options: CaseInsensitiveStringMap, scan: Scan, output: Seq[AttributeReference],
      session: Compat.Session): Option[LogicalRelation] = attempt {
    for (own <- readable(of); described <- describe(own)) yield relation(own, options, scan, output, described, session)
  }

  override def named(of: DataSourceV2Relation, session: Compat.Session): Option[LogicalRelation] =
    for {
      _ <- readable(of.table)
      name <- of.identifier.map(ofMain(_, session))
      catalog <- of.catalog.collect { case own: TableCatalog => own }
      own <- newest(catalog, name)
      made <- attempt {
        describe(own).filter(described =>
          name.namespace.mkString(".") == described.database && name.name == described.identifier.table).map { described =>
          val options = CaseInsensitiveStringMap.empty
          val output = DataSourceV2Relation.create(own, of.catalog, of.identifier).output
          relation(own, options, own.newScanBuilder(options).build(), output, described, session)
        }
      }
    } yield made

  /**
   * Removes the branch from the name of a table. If a session sets `spark.wap.branch` to a branch, Iceberg appends this
   * branch to the name of each table that the session reads.
   */
  private def ofMain(name: Identifier, session: Compat.Session): Identifier =
    session.sessionState.conf.settings.asScala.get("spark.wap.branch") match {
      case Some(branch) if name.name == s"branch_$branch" && name.namespace.length > 1 =>
        Identifier.of(name.namespace.init, name.namespace.last)
      case _ => name
    }

  /**
   * Returns a table in its newest state. A catalog caches tables for a while, and another session may have changed the
   * table. This method refreshes the cached table object in place. If this method replaced the table object, a
   * concurrent statement could commit to the former object. Later queries would then not see the commit.
   */
  private def newest(catalog: TableCatalog, name: Identifier): Option[Table with SupportsRead] =
    readable(catalog.loadTable(name)).flatMap { cached =>
      // A table that another session has dropped and created again cannot be refreshed.
      try Reflection.call(Reflection.call(cached, "table"), "refresh")
      catch { case NonFatal(_) => catalog.invalidateTable(name) }
      readable(catalog.loadTable(name))
    }

  private def readable(of: Table): Option[Table with SupportsRead] = of match {
    case own: SupportsRead if own.getClass.getName == table => Some(own)
    // A DELETE, UPDATE or MERGE wraps its target in this class.
    case target: RowLevelOperationTable => readable(target.table)
    case _ => None
  }

  private def relation(
      of: Table with SupportsRead, options: CaseInsensitiveStringMap, scan: Scan, output: Seq[AttributeReference],
      described: CatalogTable, session: Compat.Session): LogicalRelation = {
    val listing = new IcebergFiles(of, options, scan)
    // Another release of Iceberg may lack methods that Sieve needs. The following calls then fail here, before a query
    // uses the relation.
    IcebergApi.of(of)
    listing.columns
    listing.asOf
    val made = HadoopFsRelation(listing, new StructType, IcebergFiles.types(of), None, IcebergFormat(), Map.empty)(session)
    LogicalRelation(made, isStreaming = false).copy(output = output, catalogTable = Some(described))
  }

  override def isOfSnapshot(scan: Scan): Boolean = IcebergScans.isOfQuery(scan)

  /** MERGE numbers the rows of its target only to find rows with several matches. */
  override def numbersRows(projection: Project): Boolean = (projection.collectLeaves() match {
    case Seq(target: DataSourceV2ScanRelation) =>
      target.relation.table.isInstanceOf[RowLevelOperationTable] && readable(target.relation.table).nonEmpty
    case _ => false
  }) && projection.projectList.forall(column => column.deterministic || (column match {
    case Alias(_: MonotonicallyIncreasingID, _) => true
    case _ => false
  }))

  override def narrowed(relation: HadoopFsRelation, some: Seq[PartitionDirectory]): Scan = {
    val own = files(relation)
    IcebergScans.narrowed(own.table, own.options, own.scan, IcebergFiles.tasks(some))
  }

  override def reading(scan: LogicalRelation, relation: HadoopFsRelation, some: Seq[PartitionDirectory]): Option[LogicalPlan] = {
    val own = files(relation)
    val tasks = IcebergFiles.tasks(some)
    val rows = new IcebergTaskTable(own, own.scan.readSchema, tasks)
    Some(DataSourceV2ScanRelation(
      DataSourceV2Relation.create(rows, None, None), IcebergScans.of(own, own.scan.readSchema, tasks),
      scan.output))
  }

  override def frame(
      reading: Compat.Session, relation: HadoopFsRelation, some: Seq[FileStatusWithMetadata],
      place: String, cuts: Seq[Seq[Long]]): Option[DataFrame] =
    Some(IcebergTaskTable.frame(reading, files(relation), some, place, cuts))

  /** The offsets at which Iceberg itself splits a file, as the file's writer has recorded them. */
  override def splits(file: FileStatusWithMetadata): Option[Seq[Long]] = {
    val task = IcebergFiles.taskOf(file)
    Some(IcebergApi.of(task).splits(task))
  }
  override def layout(relation: HadoopFsRelation, file: FileStatusWithMetadata): Option[String] = {
    val task = IcebergFiles.taskOf(file)
    if (splits(file).exists(_.size > 1)) Some(IcebergApi.of(task).format(task)) else None
  }

  /** Returns the result of a call of Iceberg's classes. If the call fails, logs a warning and returns None. */
  private def attempt[A](call: => Option[A]): Option[A] =
    try call
    catch {
      case _: IcebergColumnsChanged => None
      case e @ (NonFatal(_) | _: LinkageError) =>
        warnOnce(s"no index of an Iceberg table is used, because this release of Iceberg has other classes: $e")
        None
    }

  // -- the catalog ------------------------------------------------------------------------------

  override def ownsCatalog(plugin: CatalogPlugin): Boolean =
    Reflection.hierarchy(plugin.getClass).exists(kind => catalogs(kind.getName))

  override def describe(catalog: TableCatalog, name: Identifier): Option[CatalogTable] =
    newest(catalog, name).flatMap(describe)

  override def tableIn(argument: AnyRef): Option[AnyRef] = argument match {
    case of: Table => attempt(readable(of).flatMap(describe))
    case _ => None
  }

  override def isSource(table: CatalogTable): Boolean =
    table.properties.get("table_type").exists(_.equalsIgnoreCase("iceberg"))

  /**
   * Describes a table as the session catalog would. The creation time is a number from the table's UUID, so a table
   * that was dropped and created again counts as another table. Returns None for a table that Iceberg reads by its
   * path, because such a table has no name.
   */
  private def describe(of: Table): Option[CatalogTable] = {
    val iceberg = Reflection.call(of, "table")
    val parts = Reflection.call(iceberg, "name").toString.split('.').toSeq
    if (parts.size < 3 || parts.exists(_.exists("/:".contains(_)))) None
    else {
      val uuid = Reflection.call(iceberg, "uuid").asInstanceOf[UUID]
      Some(CatalogTable(
        TableIdentifier(parts.last, Some(parts.tail.init.mkString(".")), Some(parts.head)), CatalogTableType.MANAGED,
        CatalogStorageFormat.empty.copy(locationUri = Some(IcebergFiles.path(Reflection.call(iceberg, "location").toString).toUri)),
        IcebergFiles.types(of), provider = Some("iceberg"),
        createTime = (uuid.getMostSignificantBits ^ uuid.getLeastSignificantBits) & Long.MaxValue,
        properties = properties(iceberg)))
    }
  }
}
