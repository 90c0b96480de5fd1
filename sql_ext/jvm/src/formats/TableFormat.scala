package org.apache.spark.sql.sieve.formats

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression}
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, Table, TableCatalog}
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution.datasources.{FileIndex, FileStatusWithMetadata, HadoopFsRelation, LogicalRelation, PartitionDirectory}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A table format. This trait tells how Spark's readers find the files of a table, and what an index can conclude from
 * the files. The methods' defaults suit plain files. A format overrides the methods that differ. No code outside this
 * package names a format.
 */
trait TableFormat {
  /** True if a listing of files belongs to this format and an index is allowed to prune the listing. */
  def owns(location: FileIndex): Boolean

  /** True if the installed release of the format provides all information that an index needs about a relation. */
  def isKnown(relation: HadoopFsRelation): Boolean = true

  // -- files ------------------------------------------------------------------------------------

  def locations(relation: HadoopFsRelation): Locations = new Locations

  /**
   * True if listings of an unchanged table contain the same status objects, and these objects determine the files'
   * locations.
   */
  def keepsStatuses: Boolean = false

  /**
   * The table in the form that statements use. This form contains the list of files and, for some formats, a log of
   * changes.
   */
  def table(files: ListedFiles): FormatTable = new FormatTable(files)

  /** True if a query reads an earlier state of the table. */
  def isAsOf(relation: HadoopFsRelation): Boolean = false

  /**
   * The completion time of the newest commit that a query of an earlier state shows, in ms since the epoch. Returns
   * None for other queries.
   */
  def asOf(relation: HadoopFsRelation): Option[Long] = None

  /** True if a listing always shows the same state of the table. */
  def isPinned(location: FileIndex): Boolean = true

  /** The files that a scan with these filters will list. Returns None if these files have not been listed yet. */
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

  /** The relation of the underlying files. This relation also returns the rows that the table hides. */
  def physical(relation: HadoopFsRelation): HadoopFsRelation = relation

  /**
   * All settings and facts that decide how the format's own readers read a column. Returns None if Spark's readers read
   * the files.
   */
  def reader(relation: HadoopFsRelation): Option[Map[String, String]] = None

  // -- scans of DataSource V2 ----------------------------------------------------------------------

  /**
   * Returns the files of a scan, with the scan's columns and the scan's table. Returns None if the format cannot
   * restrict the scan to some files.
   */
  def scanned(of: Table, options: CaseInsensitiveStringMap, scan: Scan, output: Seq[AttributeReference],
      session: Compat.Session): Option[LogicalRelation] = None

  /**
   * If a DELETE, UPDATE or MERGE replaces all files of a scan, returns these files. No index is allowed to prune this
   * scan. Returns None for any other scan.
   */
  def replaced(of: Table, options: CaseInsensitiveStringMap, scan: Scan, output: Seq[AttributeReference],
      session: Compat.Session): Option[LogicalRelation] = None

  /** True if a scan of DataSource V2 reads the same rows whenever Spark executes the scan. */
  def isOfSnapshot(scan: Scan): Boolean = false

  /** Returns all current files of a table that Spark reads through DataSource V2. */
  def named(of: DataSourceV2Relation, session: Compat.Session): Option[LogicalRelation] = None

  /**
   * Returns a scan that reads only some files of the relation. In all other respects, the scan equals the relation's
   * own scan.
   */
  def narrowed(relation: HadoopFsRelation, some: Seq[PartitionDirectory]): Scan =
    throw new UnsupportedOperationException("no scan of the second data source interface")

  /**
   * The plan of a scan that reads only some files and returns the columns of `scan`. Returns None if Spark's own file
   * readers can read these files.
   */
  def reading(scan: LogicalRelation, relation: HadoopFsRelation, some: Seq[PartitionDirectory]): Option[LogicalPlan] =
    None

  /**
   * A data frame of all rows of some files, from which an index is built. Returns None if the relation `physical` reads
   * these rows.
   *
   * @param cuts the offsets at which each file is cut
   */
  def frame(
      reading: Compat.Session, relation: HadoopFsRelation, some: Seq[FileStatusWithMetadata],
      place: String, cuts: Seq[Seq[Long]]): Option[DataFrame] = None

  /**
   * The name of the file format, if readers can read ranges of the file. Returns None for a file that is always read
   * whole.
   */
  def layout(relation: HadoopFsRelation, file: FileStatusWithMetadata): Option[String] = None

  /**
   * The offsets at which readers can cut a file. Returns None if they can cut the file at every row group or stripe.
   */
  def splits(file: FileStatusWithMetadata): Option[Seq[Long]] = None

  /** True if a catalog stores the properties of the format's tables. */
  def ownsCatalog(plugin: CatalogPlugin): Boolean = false

  /**
   * A table in a catalog of the format, in the form of the session catalog. Returns None for a table of another format.
   */
  def describe(catalog: TableCatalog, name: Identifier): Option[CatalogTable] = None

  /** True if a catalog of the format owns the table, and the session catalog has only a copy of the table's entry. */
  def isSource(table: CatalogTable): Boolean = false

  // -- plans ------------------------------------------------------------------------------------

  /** Applies the changes of the format's own planner strategy to a scan's plan. Returns None if these changes fail. */
  def prepared(session: SparkSession, plan: LogicalPlan): Option[LogicalPlan] = Some(plan)

  /** True if the format, and not the query, has added a filter to a scan. */
  def addsFilter(filter: Expression): Boolean = false

  /** Removes the functions that the format wraps around an expression in order to count rows. */
  def withoutCounters(e: Expression): Expression = e

  /** True if a projection of a command adds numbers to rows only to distinguish the rows. */
  def numbersRows(projection: Project): Boolean = false

  /**
   * Returns the type of the join with which MERGE finds rows of a table. `joinType` is the type that MERGE's clauses
   * need. Returns None if MERGE needs no join.
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

  /** Returns the catalog's table in a folder. A command can write to a table by the path of the table's folder. */
  def tableAt(path: Path, session: Compat.Session): Option[TableIdentifier] = None

  /**
   * The catalog's table that an argument of a command names. Returns None if the argument's class does not belong to
   * the format.
   */
  def tableIn(argument: AnyRef): Option[AnyRef] = None

  /** True if CREATE OR REPLACE preserves the table's identity but removes its properties. */
  def isReplacedInPlace(table: CatalogTable): Boolean = false

  /** True if this driver can have tables for which `isReplacedInPlace` is true. */
  def replacesInPlace: Boolean = false
}

/** The format of plain Parquet, ORC, CSV and JSON files, which Spark itself lists. */
object PlainFiles extends TableFormat {
  private val listings = Set("datasources.InMemoryFileIndex", "datasources.PrunedInMemoryFileIndex",
    "datasources.CatalogFileIndex", "streaming.MetadataLogFileIndex", "streaming.runtime.MetadataLogFileIndex")
    .map("org.apache.spark.sql.execution." + _)

  override def owns(location: FileIndex): Boolean = listings(location.getClass.getName)
  override def keepsStatuses: Boolean = true
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

  /** The format of a relation; `PlainFiles` if no other format owns the relation. */
  def of(relation: HadoopFsRelation): TableFormat = of(relation.location)
  def of(location: FileIndex): TableFormat = location match {
    case listing: RangeListing => of(listing.delegate)
    case own => all.find(_.owns(own)).getOrElse(PlainFiles)
  }

  /** True if this driver knows how readers read the relation's files. Scans of other relations use no index. */
  def isKnown(relation: HadoopFsRelation): Boolean =
    all.exists(format => format.owns(relation.location) && format.isKnown(relation))

  /**
   * The columns of a scan whose values come from the files. The columns' metadata contains the declared type of CHAR
   * and VARCHAR columns. Spark removes this metadata from the columns of a scan that pads CHAR values.
   */
  def filesColumns(scan: LogicalRelation): Seq[AttributeReference] = scan.relation match {
    case files: HadoopFsRelation =>
      val partitions = of(files).partitionColumns(files).toSet
      val declared = files.schema.filter(f => CharVarcharUtils.getRawType(f.metadata).nonEmpty).map(f => f.name -> f.metadata).toMap
      scan.output.filterNot(a => partitions(a.name)).map(a => declared.get(a.name).fold(a)(a.withMetadata))
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
