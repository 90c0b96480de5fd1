package org.apache.spark.sql.sieve.plan

import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicReference
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.sieve.ask.{Counters, IndexedScan, Prefetch, Pruned, Pruner}
import org.apache.spark.sql.sieve.predicate.{Filters, IndexedColumns, IndexedExpressions, TopK}
import org.apache.spark.sql.sieve.base.Reason.Reason
import org.apache.spark.sql.sieve.base.{Compat, Reason}
import org.apache.spark.sql.sieve.catalog.Entry
import org.apache.spark.sql.sieve.formats.{RangeListing, TableFormat}
import org.apache.spark.sql.types.StructType

/**
 * A listing of a table that omits the files and ranges in which no row matches, according to an index. Spark can merge,
 * reuse and re-plan scans of this listing. So a scan uses a prefetched answer only if the prefetched request equals the
 * scan's current request.
 *
 * @param showsSplits whether the rows of the query can depend on how files are split
 */
class SieveFileIndex(
    val scan: LogicalRelation, val relation: HadoopFsRelation, val table: CatalogTable,
    val entry: Entry, val executing: Compat.Session, val showsSplits: Boolean,
    val mixesPartitions: Boolean = false) extends RangeListing with IndexedScan {
  override val delegate: FileIndex = relation.location
  val indexed = new IndexedColumns(scan, relation, entry, executing)
  override def expressions: IndexedExpressions = indexed.expressions
  private def context = executing.sparkContext
  private lazy val skipped = SQLMetrics.createMetric(context, "number of files skipped")
  private lazy val rangesSkipped = SQLMetrics.createMetric(context, "number of ranges skipped")
  private lazy val bytesSkipped = SQLMetrics.createSizeMetric(context, "bytes skipped")
  private lazy val pruneTime = SQLMetrics.createTimingMetric(context, "prune time")
  private lazy val keys = SQLMetrics.createMetric(context, "number of keys received")
  private lazy val keyTime = SQLMetrics.createTimingMetric(context, "time waiting for keys")
  @volatile private var ofKeys: Option[Reason] = None
  /** The indexes that the last call of `listFiles` or `listRanges` used, as `name@version`. */
  @volatile var used: Seq[String] = Nil
  private val prefetched = new AtomicReference[Option[Prefetch]](None)

  /** Sends the request for a listing with these filters before the scan needs the listing. */
  def prefetch(filters: Seq[Expression]): Unit = {
    prefetched.set(Pruner.prefetch(this, Filters.evaluable(filters), first(filters)))
  }

  /**
   * The number of bytes that remain in the listed files after indexes have skipped files and ranges. Returns None if
   * the query reads an earlier state of the table.
   */
  def estimate(listed: Seq[PartitionDirectory], filters: Seq[Expression]): Option[Long] =
    if (TableFormat.of(relation).isAsOf(relation)) None
    else {
      val pruned = Pruner.prune(this, listed, filters, inRanges = true)
      val locations = TableFormat.of(relation).locations(relation)
      val remaining = for (directory <- pruned.remaining; file <- directory.files) yield locations.bytes(directory.values, file)
      Some(remaining.sum)
    }

  override def takePrefetched(): Option[Prefetch] = prefetched.getAndSet(None).filter(_.isRecent)

  /** The metrics of the last listing. Each scan of a plan has its own `SieveFileIndex`. */
  def metrics: Map[String, SQLMetric] = Map(
    "numFilesSkipped" -> skipped, "numRangesSkipped" -> rangesSkipped, "bytesSkipped" -> bytesSkipped,
    "pruneTime" -> pruneTime)

  /** The additional metrics of a scan with run-time values. */
  def keyMetrics: Map[String, SQLMetric] = Map("numKeys" -> keys, "keyTime" -> keyTime)

  /**
   * Records the number of run-time values for the next listing. Also records why this listing might contain more files
   * than the values require.
   */
  def received(resolved: Resolved): Unit = {
    keys.set(resolved.keys)
    ofKeys = resolved.reason
  }

  /** Records how long a scan waited for run-time values. */
  def waited(nanos: Long): Unit = {
    Counters.waited(nanos)
    keyTime.set(TimeUnit.NANOSECONDS.toMillis(nanos))
  }

  /**
   * The top-k condition in the filters. Returns None if readers are allowed to leave out rows that the index contains.
   */
  def first(filters: Seq[Expression]): Option[TopK] =
    TopK.in(filters).filterNot(_ => TopK.mayBeMissing(relation))

  override def listFiles(
      partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    list(partitionFilters, dataFilters, inRanges = false)

  override def listRanges(
      partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    list(partitionFilters, dataFilters, inRanges = true)

  private def list(
      partitionFilters: Seq[Expression], dataFilters: Seq[Expression],
      inRanges: Boolean): Seq[PartitionDirectory] = {
    val listed = delegate.listFiles(partitionFilters, dataFilters.filterNot(RunTimeFilters.isOwn))
    // An audit reads the skipped files with the same filters that the index evaluated.
    val (filters, bound) = (Filters.evaluable(dataFilters), first(dataFilters))
    val start = System.nanoTime
    val answer = Pruner.prune(this, listed, filters, inRanges, bound)
    val pruned = answer.copy(reasons = answer.reasons ++ ofKeys.map(_ -> Pruned.files(answer.remaining)))
    RequireCheck(this, pruned)
    val millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime - start)
    pruneTime.set(millis)
    Counters.scanned(pruned)
    used = pruned.used
    skipped.set(pruned.filesSkipped)
    rangesSkipped.set(pruned.ranges.total - pruned.ranges.read)
    bytesSkipped.set(pruned.bytesSkipped)
    SieveFileIndex.observers.foreach(_.listed(this, Listing(filters, bound, pruned, millis)))
    pruned.remaining
  }

  override def rootPaths: Seq[Path] = delegate.rootPaths
  override def inputFiles: Array[String] = delegate.inputFiles
  override def refresh(): Unit = delegate.refresh()
  override def sizeInBytes: Long = delegate.sizeInBytes
  override def partitionSchema: StructType = delegate.partitionSchema
  override def metadataOpsTimeNs: Option[Long] = delegate.metadataOpsTimeNs
  override def toString: String = s"Sieve($delegate)"

  override def equals(other: Any): Boolean = other match {
    case that: SieveFileIndex => delegate == that.delegate && entry.epoch == that.entry.epoch
    case _ => false
  }
  override def hashCode: Int = 31 * delegate.hashCode + entry.epoch.hashCode
}

object SieveFileIndex {
  /** The observers of all listings. Each listing calls the observers in this order, before Spark reads the files. */
  @volatile var observers: Seq[ListingObserver] = Nil
}
