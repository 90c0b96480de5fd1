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
import org.apache.spark.sql.sieve.base.{Json, OnceLogging, Policy}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.Utils

/**
 * Delta tables as Spark reads them: a relation of Parquet files whose listing and format are classes
 * of Delta's own. Its jar is the user's, of whatever version, so its classes and methods are found by
 * name. Files never change under their names; deletion vectors hide some of their rows from queries.
 */
object Delta extends TableFormat with OnceLogging {
  private val listings = Policy.texts("/delta/listings").toSet
  /** The listing of files that a command names, which no query has. */
  val listingOfFiles: String = Policy.at("/delta/listing_of_files").asText
  private val formats = Policy.texts("/delta/formats").toSet
  private val tables = Policy.texts("/delta/tables").toSet
  private val provider = Policy.at("/delta/provider").asText
  private val strategy = Policy.at("/delta/vectors_strategy").asText
  private val counter = Policy.at("/delta/counter").asText
  private val deletedColumn = Policy.at("/delta/deleted_column").asText

  /** Listings of a snapshot, or of some of its files; those of changes between snapshots are others. */
  override def owns(location: FileIndex): Boolean = listings(location.getClass.getName)

  override def table(files: ListedFiles): FormatTable = new DeltaTable(files)

  /** Deletion vectors hide some. */
  override def showsAllRows: Boolean = false

  override def stored(relation: HadoopFsRelation): Seq[String] => Seq[String] = DeltaColumns.stored(relation)
  override def columns(relation: HadoopFsRelation): StructType = DeltaColumns.ofFiles(relation)

  /** Whether a catalog's table is one of Delta's. */
  private def isTable(table: AnyRef): Boolean = tables(table.getClass.getName)
  override def tableIn(argument: AnyRef): Option[AnyRef] =
    if (isTable(argument)) Some(call(argument, "catalogTable")) else None
  override def isReplacedInPlace(table: CatalogTable): Boolean = table.provider.exists(_.equalsIgnoreCase(provider))

  /** Whether this driver has Delta, without which no table is one of Delta's. */
  override lazy val replacesInPlace: Boolean = tables.exists(name =>
    Try(Class.forName(name, false, Utils.getContextOrSparkClassLoader)).isSuccess)

  def isFormat(format: FileFormat): Boolean = formats(format.getClass.getName)

  /** Whether the Delta at hand tells of a relation how columns are named in files, and which version it is of. */
  override def isKnown(relation: HadoopFsRelation): Boolean = isFormat(relation.fileFormat) &&
    attempt((DeltaColumns.stored(relation), asOf(relation))).isDefined

  /**
   * The plan with a filter of the rows that deletion vectors hide, above scans of tables that have
   * any; None if that cannot be had. Delta puts it in when it plans a scan, which it knows by its own
   * listing: whoever wraps the listing must have this done before, or queries show deleted rows.
   */
  override def prepared(session: SparkSession, plan: LogicalPlan): Option[LogicalPlan] =
    plan.collectFirst { case l: LogicalRelation => l.relation }.collect {
      case fs: HadoopFsRelation if owns(fs.location) => fs.location
    }.fold(Option(plan)) { location =>
      attempt {
        val own = location.getClass.getClassLoader.loadClass(strategy)
          .getConstructors.head.newInstance(session).asInstanceOf[AnyRef]
        val made = own.getClass.getMethod("preprocessTablesWithDVs", classOf[LogicalPlan]).invoke(own, plan)
        made.asInstanceOf[LogicalPlan]
      }
    }

  /** What Delta's classes make; None, with a warning, where they are not as these calls expect. */
  private def attempt[A](made: => A): Option[A] =
    try Some(made)
    catch {
      // Delta would fail, or be cancelled, in the same way without an index.
      case e: InvocationTargetException => throw e.getCause
      case e @ (NonFatal(_) | _: LinkageError) =>
        warnOnce(s"no index of a Delta table is used, since this Delta has other classes: $e")
        None
    }

  /** Whether a filter is that of deletion vectors. Indexes do not know it: they hold hidden rows as well. */
  override def addsFilter(filter: Expression): Boolean = filter.references.exists(_.name == deletedColumn)

  /** Parquet files with hidden rows, and columns as named in the files. */
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
   * An expression without Delta's counters of rows, which give what they are given. Nothing is counted
   * twice: a join's keys are those of its broadcast, or the filter is given up.
   */
  override def withoutCounters(e: Expression): Expression =
    e.transform { case count if count.getClass.getName == counter => count.children.head }

  /**
   * Whether a projection is one of Delta's MERGE that numbers the rows of its target, and names their
   * files. The numbers only tell rows apart, so they may be others where rows without a match are left out.
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

  /** A table's own listing, of its snapshot as it is now and no other. */
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

  /** Whether each listing is of one version. A table's own is of the newest, until Delta's rule prepares a query's scan. */
  override def isPinned(location: FileIndex): Boolean =
    !has(location, "isTimeTravelQuery") || call(location, "isTimeTravelQuery") == true

  /** Whether a query is of an earlier version of the table. */
  override def isAsOf(relation: HadoopFsRelation): Boolean = earlier(relation.location).nonEmpty

  /** When the commit was made of the earlier version that a query is of, ms since the epoch. */
  override def asOf(relation: HadoopFsRelation): Option[Long] = earlier(relation.location).map(committed)

  /** When the commit of a snapshot was made, ms since the epoch. */
  private def committed(snapshot: AnyRef): Long = call(snapshot, "timestamp").asInstanceOf[Long]

  /** The commit that a pinned listing is of: when it was made, its number, the identity of the table; JSON. */
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
