package org.apache.spark.sql.sieve.formats

import java.lang.reflect.InvocationTargetException
import scala.util.Try
import scala.util.control.NonFatal
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.{Alias, Expression, InputFileName, MonotonicallyIncreasingID}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.sieve.base.{Json, OnceLogging}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.Utils

/**
 * Delta tables as Spark reads them: a relation of Parquet files whose listing and format are classes of
 * Delta. The user supplies Delta's jar, of any version, so this object finds Delta's classes and methods by
 * name. A file never changes under its name; deletion vectors hide some of its rows from queries.
 */
object Delta extends TableFormat with OnceLogging {
  private val root = "org.apache.spark.sql.delta"
  /** The listing of files that a Delta command names, which no query has. */
  val listingOfFiles: String = s"$root.files.TahoeBatchFileIndex"
  /** Listings of queries, of tables without Delta's own skipping, and of DELETE, UPDATE and MERGE. */
  private val listings =
    Set(s"$root.stats.PreparedDeltaFileIndex", s"$root.files.TahoeLogFileIndex", listingOfFiles)
  private val tableClass = s"$root.catalog.DeltaTableV2"
  private val deletedColumn = "__delta_internal_is_row_deleted"

  /**
   * Whether a listing shows a snapshot, or some files of a snapshot. Listings of changes between snapshots do
   * not count.
   */
  override def owns(location: FileIndex): Boolean = listings(location.getClass.getName)

  override def table(files: ListedFiles): FormatTable = new DeltaTable(files)

  /** Deletion vectors hide some rows. */
  override def showsAllRows: Boolean = false

  override def stored(relation: HadoopFsRelation): Seq[String] => Seq[String] = DeltaColumns.stored(relation)
  override def columns(relation: HadoopFsRelation): StructType = DeltaColumns.ofFiles(relation)

  /** Whether a table of a catalog is a Delta table. */
  private def isTable(table: AnyRef): Boolean = table.getClass.getName == tableClass
  override def tableIn(argument: AnyRef): Option[AnyRef] =
    if (isTable(argument)) Some(call(argument, "catalogTable")) else None
  override def writingCommands: Set[String] = Set("CreateDeltaTable", "Delete", "Update", "MergeInto", "OptimizeTable",
    "DeltaReorgTable", "RestoreTable").map(name => s"$root.commands.${name}Command")
  override def isReplacedInPlace(table: CatalogTable): Boolean = table.provider.exists(_.equalsIgnoreCase("delta"))

  /** Whether this driver has Delta, without which no table is a Delta table. */
  override lazy val replacesInPlace: Boolean =
    Try(Class.forName(tableClass, false, Utils.getContextOrSparkClassLoader)).isSuccess

  def isFormat(format: FileFormat): Boolean = format.getClass.getName == s"$root.DeltaParquetFileFormat"

  /**
   * Whether this release of Delta gives access to a relation's column names in files and to the version that is
   * read.
   */
  override def isKnown(relation: HadoopFsRelation): Boolean = isFormat(relation.fileFormat) &&
    attempt((DeltaColumns.stored(relation), asOf(relation))).isDefined

  /**
   * The plan with a filter of the rows that deletion vectors hide, above scans of tables that have such rows;
   * None if the filter cannot be made. Delta adds the filter when it plans a scan, which it recognises by its
   * own listing. A rule that wraps the listing must call this method first, or queries show deleted rows.
   */
  override def prepared(session: SparkSession, plan: LogicalPlan): Option[LogicalPlan] =
    plan.collectFirst { case l: LogicalRelation => l.relation }.collect {
      case fs: HadoopFsRelation if owns(fs.location) => fs.location
    }.fold(Option(plan)) { location =>
      attempt {
        val own = location.getClass.getClassLoader.loadClass(s"$root.PreprocessTableWithDVsStrategy")
          .getConstructors.head.newInstance(session).asInstanceOf[AnyRef]
        val made = own.getClass.getMethod("preprocessTablesWithDVs", classOf[LogicalPlan]).invoke(own, plan)
        made.asInstanceOf[LogicalPlan]
      }
    }

  /**
   * The result of a call of Delta's classes; None, with a warning, if the classes differ from what the
   * call expects.
   */
  private def attempt[A](call: => A): Option[A] =
    try Some(call)
    catch {
      // Delta would fail, or be cancelled, in the same way without an index.
      case e: InvocationTargetException => throw e.getCause
      case e @ (NonFatal(_) | _: LinkageError) =>
        warnOnce(s"no index of a Delta table is used, since this Delta has other classes: $e")
        None
    }

  /**
   * Whether a filter is Delta's filter of deletion vectors. Indexes do not know this filter, because
   * they index hidden rows as well.
   */
  override def addsFilter(filter: Expression): Boolean = filter.references.exists(_.name == deletedColumn)

  /** The relation's Parquet files with hidden rows, and columns as named in the files. */
  override def physical(relation: HadoopFsRelation): HadoopFsRelation =
    if (!isFormat(relation.fileFormat)) relation
    else {
      val prepare = relation.fileFormat.getClass.getMethod("prepareSchemaForRead", classOf[StructType])
      def stored(schema: StructType) = prepare.invoke(relation.fileFormat, schema).asInstanceOf[StructType]
      relation.copy(
        dataSchema = stored(relation.dataSchema), partitionSchema = stored(relation.partitionSchema),
        fileFormat = new ParquetFileFormat)(relation.sparkSession)
    }

  /**
   * An expression without Delta's counters of rows, which return their argument. No row is counted twice:
   * keys of a join come only from its broadcast, otherwise the filter is dropped.
   */
  override def withoutCounters(e: Expression): Expression =
    e.transform { case count if count.getClass.getName == s"$root.metric.IncrementMetric" => count.children.head }

  /**
   * Whether a projection of Delta's MERGE numbers the rows of its target and names their files. The
   * numbers only distinguish rows, so they may change when rows without a match are left out.
   */
  override def numbersRows(projection: Project): Boolean = projection.collectLeaves().forall {
    case l: LogicalRelation => l.relation match {
      case fs: HadoopFsRelation => fs.location.getClass.getName == listingOfFiles
      case _ => false
    }
    case _ => false
  } && projection.projectList.forall(column => column.deterministic || (column match {
    case Alias(_: MonotonicallyIncreasingID | _: InputFileName, _) => true
    case _ => false
  }))

  // -- versions -----------------------------------------------------------------------------------

  /** A table's own listing, pinned to the table's current snapshot. */
  def pinned(location: FileIndex): FileIndex = location match {
    case table: Product =>
      val (known, now) = (call(table, "snapshotAtAnalysis"), call(table, "getSnapshot"))
      val arguments = table.productIterator.map {
        case own: AnyRef if own eq known => now
        case _: Boolean => Boolean.box(true)
        case other => other.asInstanceOf[AnyRef]
      }.toSeq
      table.getClass.getMethods.find(_.getName == "copy").get.invoke(table, arguments: _*).asInstanceOf[FileIndex]
    case other => other
  }

  /**
   * Whether a listing stays at one version. A table's own listing follows the newest version, until
   * Delta's rule prepares a query's scan.
   */
  override def isPinned(location: FileIndex): Boolean =
    !has(location, "isTimeTravelQuery") || call(location, "isTimeTravelQuery") == true

  /** Whether a query reads an earlier version of the table. */
  override def isAsOf(relation: HadoopFsRelation): Boolean = earlier(relation.location).nonEmpty

  /** The commit time of the earlier version that a query reads, ms since the epoch. */
  override def asOf(relation: HadoopFsRelation): Option[Long] = earlier(relation.location).map(committed)

  /** The commit time of a snapshot, ms since the epoch. */
  private def committed(snapshot: AnyRef): Long = call(snapshot, "timestamp").asInstanceOf[Long]

  /** The commit of a pinned listing as JSON: its time, its number, and the identity of the table. */
  def commit(location: FileIndex): String = {
    val snapshot = call(location, "getSnapshot")
    Json.write(Map("time_ms" -> committed(snapshot), "version" -> call(snapshot, "version"),
      "table" -> call(call(snapshot, "metadata"), "id")))
  }

  private def earlier(location: FileIndex): Option[AnyRef] =
    if (has(location, "preparedScan")) {
      if (call(location, "versionScanned") == None) None
      else Some(call(call(location, "preparedScan"), "scannedSnapshot"))
    }
    else if (has(location, "isTimeTravelQuery") && call(location, "isTimeTravelQuery") == true)
      Some(call(location, "getSnapshot"))
    else None

  private def has(of: AnyRef, method: String): Boolean = of.getClass.getMethods.exists(_.getName == method)
  private def call(of: AnyRef, method: String): AnyRef = Hudi.call(of, method)
}
