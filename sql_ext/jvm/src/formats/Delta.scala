package org.apache.spark.sql.sieve.formats

import java.lang.reflect.InvocationTargetException
import scala.util.Try
import scala.util.control.NonFatal
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.{Alias, Expression, InputFileName, MonotonicallyIncreasingID}
import org.apache.spark.sql.catalyst.plans.logical.{DeleteFromTable, LogicalPlan, MergeIntoTable, Project}
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.sieve.base.{Json, OnceLogging}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.Utils

/**
 * Support for Delta tables. For Spark, a Delta table is a relation of Parquet files whose listing and format are
 * classes of Delta. The user supplies Delta's jar, of any version, so this object finds Delta's classes and methods
 * by name. The content of a file never changes. Deletion vectors hide some rows of a file from queries.
 */
object Delta extends TableFormat with OnceLogging {
  import Reflection.getter

  private val root = "org.apache.spark.sql.delta"
  /** The class of the listing with which a Delta command reads its chosen files. Queries never use this class. */
  val listingOfFiles: String = s"$root.files.TahoeBatchFileIndex"
  /**
   * The classes of Delta's listings: two classes for queries, with and without data skipping, and one for DELETE,
   * UPDATE and MERGE.
   */
  private val listings =
    Set(s"$root.stats.PreparedDeltaFileIndex", s"$root.files.TahoeLogFileIndex", listingOfFiles)
  private val tableClass = s"$root.catalog.DeltaTableV2"
  private val deletedColumn = "__delta_internal_is_row_deleted"

  /** True if a listing contains files of one snapshot only. False for a listing of the changes between snapshots. */
  override def owns(location: FileIndex): Boolean = listings(location.getClass.getName)

  override def table(files: ListedFiles): FormatTable = new DeltaTable(files)

  override def stored(relation: HadoopFsRelation): Seq[String] => Seq[String] = DeltaColumns.stored(relation)
  override def columns(relation: HadoopFsRelation): StructType = DeltaColumns.ofFiles(relation)

  /** True if a table of a catalog is a Delta table. */
  private def isTable(table: AnyRef): Boolean = table.getClass.getName == tableClass
  override def tableIn(argument: AnyRef): Option[AnyRef] =
    if (isTable(argument)) Some(getter(argument, "catalogTable")) else None
  override def writingCommands: Set[String] = Set("CreateDeltaTable", "Delete", "Update", "MergeInto", "OptimizeTable",
    "DeltaReorgTable", "RestoreTable").map(name => s"$root.commands.${name}Command")
  override def isReplacedInPlace(table: CatalogTable): Boolean = table.provider.exists(_.equalsIgnoreCase("delta"))

  /** True if Delta's classes are on this driver's class path. Without these classes, no table is a Delta table. */
  override lazy val replacesInPlace: Boolean =
    Try(Class.forName(tableClass, false, Utils.getContextOrSparkClassLoader)).isSuccess

  def isFormat(format: FileFormat): Boolean = format.getClass.getName == s"$root.DeltaParquetFileFormat"

  /**
   * True if this release of Delta has the methods that Sieve needs. The methods return the column names in files, and
   * the version that a query reads.
   */
  override def isKnown(relation: HadoopFsRelation): Boolean = isFormat(relation.fileFormat) &&
    attempt((DeltaColumns.stored(relation), asOf(relation))).isDefined

  /**
   * Adds a filter to each scan of a table with deletion vectors, so that the scan returns no deleted rows. Returns None
   * if a filter cannot be created. Delta itself adds this filter only if the scan uses Delta's own listing. So a rule
   * that replaces the listing must call this method first.
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
   * Returns the result of a call of Delta's classes. If the classes do not have the expected methods, logs a
   * warning and returns None.
   */
  private def attempt[A](call: => A): Option[A] =
    try Some(call)
    catch {
      // Delta itself throws this error or cancellation, with or without an index.
      case e: InvocationTargetException => throw e.getCause
      case e @ (NonFatal(_) | _: LinkageError) =>
        warnOnce(s"no index of a Delta table is used, because this release of Delta has other classes: $e")
        None
    }

  /**
   * True if a filter is Delta's filter for deletion vectors. Indexes ignore this filter, because an index also contains
   * the deleted rows.
   */
  override def addsFilter(filter: Expression): Boolean = filter.references.exists(_.name == deletedColumn)

  /**
   * Returns a relation of the same Parquet files. The relation also returns deleted rows. The relation names each
   * column as the files do.
   */
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
   * Removes Delta's row-counting functions from an expression. Each of these functions returns its argument, so the
   * expression keeps its value. If a separate job reads the keys of a join side, Sieve removes these functions from the
   * job's plan, so no row is counted twice.
   */
  override def withoutCounters(e: Expression): Expression =
    e.transform { case count if count.getClass.getName == s"$root.metric.IncrementMetric" => count.children.head }

  /**
   * True if a projection in Delta's MERGE adds row numbers and file names to the target's rows. MERGE uses the numbers
   * only to tell rows apart. So Sieve may skip rows without a match, although skipping rows changes the numbers.
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

  /**
   * Returns false for a MERGE that only inserts rows, and for a DELETE that only marks rows as deleted. Returns true
   * for any other statement.
   */
  override def readsAgain(relation: HadoopFsRelation, statement: LogicalPlan): Boolean = statement match {
    case merge: MergeIntoTable => merge.matchedActions.nonEmpty || merge.notMatchedBySourceActions.nonEmpty
    case _: DeleteFromTable => !attempt {
      val properties = getter(getter(relation.location, "metadata"), "configuration").asInstanceOf[Map[String, String]]
      properties.get("delta.enableDeletionVectors").exists(_.toBoolean)
    }.contains(true)
    case _ => true
  }

  // -- versions -----------------------------------------------------------------------------------

  /** Returns the table's own listing, fixed to the current snapshot of the table. */
  def pinned(location: FileIndex): FileIndex = location match {
    case table: Product =>
      val (known, now) = (getter(table, "snapshotAtAnalysis"), getter(table, "getSnapshot"))
      val arguments = table.productIterator.map {
        case own: AnyRef if own eq known => now
        case _: Boolean => Boolean.box(true)
        case other => other.asInstanceOf[AnyRef]
      }.toSeq
      table.getClass.getMethods.find(_.getName == "copy").get.invoke(table, arguments: _*).asInstanceOf[FileIndex]
    case other => other
  }

  /**
   * True if a listing always shows the same version. A table's own listing shows the newest version until a rule of
   * Delta fixes the version for a query.
   */
  override def isPinned(location: FileIndex): Boolean =
    !has(location, "isTimeTravelQuery") || getter(location, "isTimeTravelQuery") == true

  /** True if a query reads an earlier version of the table. */
  override def isAsOf(relation: HadoopFsRelation): Boolean = earlier(relation.location).nonEmpty

  /**
   * The commit time, in ms since the epoch, of the earlier version that a query reads. Returns None for the newest
   * version.
   */
  override def asOf(relation: HadoopFsRelation): Option[Long] = earlier(relation.location).map(committed)

  /** The commit time of a snapshot, in ms since the epoch. */
  private def committed(snapshot: AnyRef): Long = getter(snapshot, "timestamp").asInstanceOf[Long]

  /**
   * Returns the commit that a pinned listing shows, as JSON: the time and number of the commit, and the table's id.
   */
  def commit(location: FileIndex): String = {
    val snapshot = getter(location, "getSnapshot")
    Json.write(Map("time_ms" -> committed(snapshot), "version" -> getter(snapshot, "version"),
      "table" -> getter(getter(snapshot, "metadata"), "id")))
  }

  private def earlier(location: FileIndex): Option[AnyRef] =
    if (has(location, "preparedScan")) {
      if (getter(location, "versionScanned") == None) None
      else Some(getter(getter(location, "preparedScan"), "scannedSnapshot"))
    }
    else if (has(location, "isTimeTravelQuery") && getter(location, "isTimeTravelQuery") == true)
      Some(getter(location, "getSnapshot"))
    else None

  private def has(of: AnyRef, method: String): Boolean = of.getClass.getMethods.exists(_.getName == method)
}
