package org.apache.spark.sql.sieve.formats

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression}
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, Table, TableCatalog}
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution.datasources.{FileIndex, FileStatusWithMetadata, HadoopFsRelation, LogicalRelation, PartitionDirectory}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A table format: how Spark's readers find the files of a table, and what an index can conclude from the files. Each
 * method is implemented for plain files. A format overrides the methods that differ. No code outside this package names
 * a format.
 */
trait TableFormat {
  /** True if a listing of files belongs to this format and an index is allowed to prune the listing. */
  def owns(location: FileIndex): Boolean

  /** True if the installed release of the format provides all information about a relation that an index needs. */
  def isKnown(relation: HadoopFsRelation): Boolean = true

  // -- files ------------------------------------------------------------------------------------

  def locations(relation: HadoopFsRelation): Locations = new Locations

  /** The table in the form that statements use, with its list of files and its log of changes. */
  def table(files: ListedFiles): FormatTable = new FormatTable(files)

  /** True if a query reads an earlier state of the table. */
  def isAsOf(relation: HadoopFsRelation): Boolean = false

  /**
   * The completion time of the newest commit that a query of an earlier state shows, ms since the epoch. None for other
   * queries.
   */
  def asOf(relation: HadoopFsRelation): Option[Long] = None

  /** True if a listing always shows the same state of the table. */
  def isPinned(location: FileIndex): Boolean = true

  /**
   * The files that a scan with these filters will list, if an optimizer rule has already listed these files.
   */
  def listed(location: FileIndex, filters: Seq[Expression]): Option[Seq[PartitionDirectory]] = None

  /** True if the names of folders contain the values of partition columns. */
  def hasPartitionsByPath: Boolean = true

  // -- columns ----------------------------------------------------------------------------------

  /** A function that translates a column's path in the table to the column's path in the files. */
  def stored(relation: HadoopFsRelation): Seq[String] => Seq[String] = identity

  /** The names of the columns whose values do not come from the files. */
  def partitionColumns(relation: HadoopFsRelation): Seq[String] = relation.partitionSchema.fieldNames.toSeq

  /** The columns of the files. */
  def columns(relation: HadoopFsRelation): StructType = relation.dataSchema

  /** The relation of the plain files, including rows that the table hides. */
  def physical(relation: HadoopFsRelation): HadoopFsRelation = relation

  /**
   * All settings and facts that decide how the format's own readers read a column. None if Spark's readers read the
   * column.
   */
  def reader(relation: HadoopFsRelation): Option[Map[String, String]] = None

  // -- scans of the second data source interface ------------------------------------------------

  /**
   * The files of a scan, with the scan's columns and its table. None if the format cannot restrict the scan to some
   * files.
   */
  def scanned(of: Table, options: CaseInsensitiveStringMap, scan: Scan, output: Seq[AttributeReference],
      session: Compat.Session): Option[LogicalRelation] = None

  /**
   * The files of a scan with which a DELETE, UPDATE or MERGE reads files to replace all of them. No index is allowed to
   * prune such a scan. None for any other scan.
   */
  def replaced(of: Table, options: CaseInsensitiveStringMap, scan: Scan, output: Seq[AttributeReference],
      session: Compat.Session): Option[LogicalRelation] = None

  /** True if a scan of the second interface reads the same rows whenever it is executed. */
  def isOfSnapshot(scan: Scan): Boolean = false

  /** All files in the current state of a table that Spark reads through the second interface. */
  def named(of: DataSourceV2Relation, session: Compat.Session): Option[LogicalRelation] = None

  /** A scan that reads some of the relation's files, and is otherwise like the relation's own scan. */
  def narrowed(relation: HadoopFsRelation, some: Seq[PartitionDirectory]): Scan =
    throw new UnsupportedOperationException("no scan of the second data source interface")

  /** The planned scan of some files with a scan's columns. None if a relation of files can read these files. */
  def reading(scan: LogicalRelation, relation: HadoopFsRelation, some: Seq[PartitionDirectory]): Option[LogicalPlan] =
    None

  /**
   * All rows of some files for a build. None if the relation `physical` reads these rows.
   *
   * @param cuts the offsets at which each file is cut
   */
  def frame(
      reading: Compat.Session, relation: HadoopFsRelation, some: Seq[FileStatusWithMetadata],
      place: String, cuts: Seq[Seq[Long]]): Option[DataFrame] = None

  /** The format of a file that readers can read in ranges. None for a file that is always read whole. */
  def layout(relation: HadoopFsRelation, file: FileStatusWithMetadata): Option[String] = None

  /** The offsets at which readers can cut a file. None if readers can cut the file at all row groups or stripes. */
  def splits(file: FileStatusWithMetadata): Option[Seq[Long]] = None

  /** True if a catalog stores the properties of the format's tables. */
  def ownsCatalog(plugin: CatalogPlugin): Boolean = false

  /** A table of a catalog of the format, described as in the session catalog. None for a table of another format. */
  def describe(catalog: TableCatalog, name: Identifier): Option[CatalogTable] = None

  /** True if the session catalog has only a copy of the table's entry in a catalog of the format. */
  def isSource(table: CatalogTable): Boolean = false

  // -- plans ------------------------------------------------------------------------------------

  /** The plan of a scan after the changes that the format's own strategy makes. None if these changes fail. */
  def prepared(session: SparkSession, plan: LogicalPlan): Option[LogicalPlan] = Some(plan)

  /** True if the format, and not the query, has added a filter to a scan. */
  def addsFilter(filter: Expression): Boolean = false

  /** An expression without the functions that the format puts around it to count rows. */
  def withoutCounters(e: Expression): Expression = e

  /** True if a projection of a command adds numbers to rows only to distinguish the rows. */
  def numbersRows(projection: Project): Boolean = false

  /**
   * The type of the join by which MERGE finds rows of a table, if the clauses of MERGE need a certain type. None if
   * MERGE needs no join.
   */
  def mergeJoin(relation: HadoopFsRelation, joinType: JoinType): Option[JoinType] = Some(joinType)

  /** True if a DELETE, UPDATE or MERGE first finds files with rows to change, and then reads these files again. */
  def readsAgain(relation: HadoopFsRelation, statement: LogicalPlan): Boolean = false

  // -- commands and the catalog -----------------------------------------------------------------

  /** True if a plan is a command of the format that replaces a command of Spark. */
  def runs(command: LogicalPlan): Boolean = false

  /** The classes of the format's own commands that write to a table. */
  def writingCommands: Set[String] = Set.empty

  /** The classes of commands of the format that can replace a table by another table. */
  def replacingCommands: Set[String] = Set.empty

  /** True if a data source writes to tables of this format by their path. */
  def writesByPath(source: AnyRef): Boolean = false

  /** Returns the catalog's table in a folder, because a command can write to a folder by its path. */
  def tableAt(path: Path, session: Compat.Session): Option[TableIdentifier] = None

  /** The table of the catalog that an argument of a command names, if the argument's class belongs to the format. */
  def tableIn(argument: AnyRef): Option[AnyRef] = None

  /** True if CREATE OR REPLACE preserves the table's identity but removes its properties. */
  def isReplacedInPlace(table: CatalogTable): Boolean = false

  /** True if this driver can have tables for which `isReplacedInPlace` is true. */
  def replacesInPlace: Boolean = false
}

/** The format of plain files in Parquet, ORC, CSV or JSON, which Spark itself lists. */
object PlainFiles extends TableFormat {
  private val listings = Set("datasources.InMemoryFileIndex", "datasources.PrunedInMemoryFileIndex",
    "datasources.CatalogFileIndex", "streaming.MetadataLogFileIndex", "streaming.runtime.MetadataLogFileIndex")
    .map("org.apache.spark.sql.execution." + _)

  override def owns(location: FileIndex): Boolean = listings(location.getClass.getName)
  override def layout(relation: HadoopFsRelation, file: FileStatusWithMetadata): Option[String] =
    if (relation.fileFormat.isSplitable(relation.sparkSession, relation.options, file.getPath)) Some(Fingerprint.format(relation))
    else None
  override def listed(location: FileIndex, filters: Seq[Expression]): Option[Seq[PartitionDirectory]] =
    location match {
      case own: org.apache.spark.sql.execution.datasources.InMemoryFileIndex => Some(own.listFiles(Nil, Nil))
      case _ => None
    }
}

object TableFormat {
  private val all = Seq[TableFormat](PlainFiles, Hudi, Delta, Iceberg)

  /** The format of a relation; `PlainFiles` if no other format owns it. */
  def of(relation: HadoopFsRelation): TableFormat = of(relation.location)
  def of(location: FileIndex): TableFormat = location match {
    case listing: RangeListing => of(listing.delegate)
    case own => all.find(_.owns(own)).getOrElse(PlainFiles)
  }

  /** True if this driver knows how the relation's files are read. Other relations use no index. */
  def isKnown(relation: HadoopFsRelation): Boolean =
    all.exists(format => format.owns(relation.location) && format.isKnown(relation))

  /** The columns of a scan whose values come from the files. */
  def filesColumns(scan: LogicalRelation): Seq[AttributeReference] = scan.relation match {
    case files: HadoopFsRelation =>
      val partitions = of(files).partitionColumns(files).toSet
      scan.output.filterNot(a => partitions(a.name))
    case _ => scan.output
  }

  def scanned(of: Table, options: CaseInsensitiveStringMap, scan: Scan, output: Seq[AttributeReference],
      session: Compat.Session): Option[LogicalRelation] =
    all.flatMap(_.scanned(of, options, scan, output, session)).headOption
  def replaced(of: Table, options: CaseInsensitiveStringMap, scan: Scan, output: Seq[AttributeReference],
      session: Compat.Session): Option[LogicalRelation] =
    all.flatMap(_.replaced(of, options, scan, output, session)).headOption
  def isOfSnapshot(scan: Scan): Boolean = all.exists(_.isOfSnapshot(scan))
  def named(of: DataSourceV2Relation, session: Compat.Session): Option[LogicalRelation] =
    all.flatMap(_.named(of, session)).headOption
  def ownsCatalog(plugin: CatalogPlugin): Boolean = all.exists(_.ownsCatalog(plugin))
  def describe(catalog: TableCatalog, name: Identifier): Option[CatalogTable] =
    all.flatMap(_.describe(catalog, name)).headOption
  def isSource(table: CatalogTable): Boolean = all.exists(_.isSource(table))
  def addsFilter(filter: Expression): Boolean = all.exists(_.addsFilter(filter))
  def withoutCounters(e: Expression): Expression = all.foldLeft(e)((made, format) => format.withoutCounters(made))
  def numbersRows(projection: Project): Boolean = all.exists(_.numbersRows(projection))
  def writingCommands: Set[String] = all.flatMap(_.writingCommands).toSet
  def replacingCommands: Set[String] = all.flatMap(_.replacingCommands).toSet
  def runs(command: LogicalPlan): Boolean = all.exists(_.runs(command))
  def writesByPath(source: AnyRef): Boolean = all.exists(_.writesByPath(source))
  def tableAt(path: Path, session: Compat.Session): Option[TableIdentifier] =
    all.flatMap(_.tableAt(path, session)).headOption
  def tableIn(argument: AnyRef): Option[AnyRef] = all.flatMap(_.tableIn(argument)).headOption
  def isReplacedInPlace(table: CatalogTable): Boolean = all.exists(_.isReplacedInPlace(table))
  def replacesInPlace: Boolean = all.exists(_.replacesInPlace)
}
