package org.apache.spark.sql.sieve.plan

import scala.util.control.NonFatal
import org.apache.spark.sql.catalyst.expressions.{Attribute, DynamicPruningExpression, Expression}
import org.apache.spark.sql.connector.expressions.{Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.sieve.ask.{Counters, Pruned}
import org.apache.spark.sql.sieve.predicate.{Filters, TopK}
import org.apache.spark.sql.sieve.base.{Compat, Failure, OnceLogging, Reason, Settings, SieveException}
import org.apache.spark.sql.sieve.catalog.Registry
import org.apache.spark.sql.sieve.formats.TableFormat
import org.apache.spark.sql.types.StructType

/**
 * A DataSource V2 scan that omits the files in which no row matches, according to an index. A second scan of the table
 * reads the remaining files. The table's own scan `own` answers all other calls of Spark. `own` stays unchanged,
 * because other parts of a plan may share it.
 *
 * @param filters the filters above the scan, and possibly a top-k condition
 */
class PrunedScan(val own: Scan, val index: SieveFileIndex, val filters: Seq[Expression])
    extends Scan with SupportsRuntimeV2Filtering {
  /** The request to the front end. Two scans of the same table with equal requests return the same rows. */
  private lazy val question = {
    val (made, evaluable) = (PrunedScan.translation(index), Filters.evaluable(filters))
    (made.conjunction(evaluable), TopK.in(filters).map(made.orders(_, evaluable)), index.entry.epoch)
  }
  private var planned = Option.empty[Remaining]
  /** The keys of broadcasts that Spark has passed to this scan. */
  @volatile private[plan] var keys: Seq[Valued] = Nil
  /** The run-time values that `KeyedBatchScan` has passed to this scan. */
  @volatile private[plan] var values: Seq[Valued] = Nil
  /** True if a job could not read the keys of a join. */
  @volatile private[plan] var lacksKeys = false

  /**
   * The files that remain after the index has skipped files. This method computes the files at the first call, and
   * again after new run-time values arrive.
   */
  private[plan] def remaining: Remaining = synchronized {
    planned.getOrElse {
      val made = PrunedScan.remaining(this)
      planned = Some(made)
      made
    }
  }

  override def readSchema: StructType = own.readSchema
  override def description: String = s"Sieve(${own.description})"
  override def toString: String = s"Sieve($own)"
  override def toBatch: Batch = new PrunedBatch(this)

  /**
   * Tells Spark whether readers return columnar batches. Otherwise, Spark would list the files during planning to find
   * out.
   */
  override def columnarSupportMode: Scan.ColumnarSupportMode =
    try if (readers.supportColumnarReads(null)) Scan.ColumnarSupportMode.SUPPORTED
      else Scan.ColumnarSupportMode.UNSUPPORTED
    catch { case NonFatal(_) => Scan.ColumnarSupportMode.PARTITION_DEFINED }

  /** A reader factory for all files, which can also read the remaining files. */
  private[plan] lazy val readers: PartitionReaderFactory = own.toBatch.createReaderFactory

  override def filterAttributes: Array[NamedReference] = own match {
    case filtered: SupportsRuntimeV2Filtering => filtered.filterAttributes
    case _ => Array.empty
  }
  override def filter(predicates: Array[Predicate]): Unit = synchronized {
    own match {
      case filtered: SupportsRuntimeV2Filtering =>
        val columns = filterAttributes.map(_.fieldNames.toSeq).toSet
        val some = predicates.filter(_.references.forall(column => columns(column.fieldNames.toSeq)))
        if (some.nonEmpty) filtered.filter(some)
      case _ =>
    }
    keys = predicates.toSeq.flatMap(PrunedScan.keys(_, index))
    planned = None
  }

  /** Receives run-time values that Spark itself passes to no scan. */
  private[plan] def received(values: Seq[Valued], lacksKeys: Boolean): Unit = synchronized {
    this.values = values
    this.lacksKeys = lacksKeys
    planned = None
  }

  override def supportedCustomMetrics: Array[CustomMetric] =
    own.supportedCustomMetrics ++ Array[CustomMetric](new FilesRead, new FilesSkipped, new BytesRead, new BytesSkipped)
  override def reportDriverMetrics: Array[CustomTaskMetric] = own.reportDriverMetrics ++ Array(
    PrunedScan.value(new FilesRead, remaining.files), PrunedScan.value(new FilesSkipped, remaining.skipped),
    PrunedScan.value(new BytesRead, remaining.bytes), PrunedScan.value(new BytesSkipped, remaining.bytesSkipped))

  override def equals(other: Any): Boolean = other match {
    case that: PrunedScan => own == that.own && question == that.question
    case _ => false
  }
  override def hashCode: Int = 31 * own.hashCode + question.hashCode
}

/** The partitions of the remaining files, and how many files and bytes the scan reads and skips. */
private[plan] final case class Remaining(
    partitions: () => Array[InputPartition], files: Long, skipped: Long, bytes: Long, bytesSkipped: Long)

private class PrunedBatch(scan: PrunedScan) extends Batch {
  override def planInputPartitions(): Array[InputPartition] = scan.remaining.partitions()
  override def createReaderFactory(): PartitionReaderFactory = scan.readers
  override def equals(other: Any): Boolean = other match {
    case that: PrunedBatch => scan == that.of
    case _ => false
  }
  override def hashCode: Int = scan.hashCode
  private def of: PrunedScan = scan
}

object PrunedScan extends OnceLogging {
  /**
   * Returns a scan that uses the table's indexes, or None if the table has no index.
   *
   * @param first       the top-k condition, if the query needs only the first rows
   * @param awaits      whether the scan receives run-time values
   * @param showsSplits whether the rows of the query can depend on how files are split
   */
  def of(
      scan: DataSourceV2ScanRelation, filters: Seq[Expression], first: Option[TopK], awaits: Boolean,
      showsSplits: Boolean, session: Compat.Session): Option[PrunedScan] =
    for {
      files <- TableFormat.scanned(scan.relation.table, scan.relation.options, scan.scan, scan.output, session)
      entry <- Registry.find(session, files.catalogTable.get)
    } yield {
      val index = new SieveFileIndex(files, relation(files), files.catalogTable.get, entry, session, showsSplits)
      val all = filters ++ first.filter(_ => filters.forall(translation(index).isNegatable))
      // A scan with run-time values sends no early request, because its request will depend on these values.
      if (!awaits && (Filters.evaluable(filters).nonEmpty || all.size > filters.size)) index.prefetch(all)
      new PrunedScan(scan.scan, index, all)
    }

  private def translation(index: SieveFileIndex): Filters =
    Filters.of(index.scan.output, index.relation, index.expressions)

  private def relation(files: LogicalRelation): HadoopFsRelation = files.relation.asInstanceOf[HadoopFsRelation]

  private def remaining(scan: PrunedScan): Remaining = {
    val index = scan.index
    val keys = scan.keys ++ scan.values
    val count = keys.map(_.keys).sum
    if (keys.nonEmpty) Counters.resolved(count)
    index.received(Resolved(Nil, count,
      if (scan.lacksKeys) Some(Reason.KeysFailed) else if (keys.exists(_.isOfMany)) Some(Reason.KeysTooMany) else None))
    val filters = scan.filters ++ keys.map(k => DynamicPruningExpression(k.filter))
    val left = if (index.showsSplits) index.listFiles(Nil, filters) else index.listRanges(Nil, filters)
    val (files, skipped) = (Pruned.files(left), index.metrics("numFilesSkipped").value)
    val (bytes, bytesSkipped) = (Pruned.bytes(left), index.metrics("bytesSkipped").value)
    def all = Remaining(() => scan.own.toBatch.planInputPartitions(), files + skipped, 0, bytes + bytesSkipped, 0)
    if (skipped == 0 && bytesSkipped == 0) all
    else try {
      // If Iceberg cannot plan the second scan's partitions, the query must not fail, but read all files.
      val partitions = TableFormat.of(index.relation).narrowed(index.relation, left).toBatch.planInputPartitions()
      Remaining(() => partitions, files, skipped, bytes, bytesSkipped)
    } catch {
      case e @ Failure() =>
        val problem = s"${index.table.identifier.unquotedString} is read in full, because its scan cannot skip files: $e"
        if (Settings.strict(index.executing)) throw new SieveException("SIEVE_STRICT", problem, state = "55000")
        warnOnce(problem)
        all
    }
  }

  /**
   * The column and the values of a predicate `column IN (...)` that Spark has passed to the scan. Returns None for a
   * predicate of another form.
   */
  private def keys(predicate: Predicate, index: SieveFileIndex): Option[Valued] = predicate.children.toSeq match {
    case (column: NamedReference) +: values if predicate.name == "IN" =>
      index.scan.output.find(a => column.fieldNames.sameElements(Seq(a.name))).map { own =>
        val present = values.collect { case literal: Literal[_] => literal.value: Any }.toArray
        RunTimeFilters.oneOf(own, present, RunTimeFilters.packable(index))
      }
    case _ => None
  }

  private def value(of: ScanMetric, count: Long): CustomTaskMetric = new CustomTaskMetric {
    override def name: String = of.name
    override def value: Long = count
  }
}

/**
 * A metric of a scan in Spark's web UI. Each metric has a class of its own, because Spark creates a metric by the name
 * of its class.
 */
abstract class ScanMetric(override val name: String, override val description: String) extends CustomSumMetric

class FilesRead extends ScanMetric("numFiles", "number of files read")
class FilesSkipped extends ScanMetric("numFilesSkipped", "number of files skipped")
class BytesRead extends ScanMetric("filesSize", "size of files read")
class BytesSkipped extends ScanMetric("bytesSkipped", "bytes skipped")
