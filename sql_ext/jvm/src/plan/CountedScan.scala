package org.apache.spark.sql.sieve.plan

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.{FileSourceOptions, InternalRow}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.sieve.predicate.{Filters, TopK}
import org.apache.spark.sql.sieve.formats.{FileRanges, RangeListing}
import org.apache.spark.sql.types.StructType

/**
 * A scan that can read single ranges of files. Spark's web UI shows how many files, ranges and bytes this scan has
 * skipped because of an index.
 */
trait CountedScan extends FileSourceScanExec {
  /** The files to read, each with the values of its partition. */
  protected def selectedFiles: Seq[(InternalRow, FileStatusWithMetadata)]

  /** The driver metrics of Spark's own scan, together with the metrics of the table's `SieveFileIndex`. */
  override lazy val driverMetrics: Map[String, SQLMetric] = relation.location match {
    case index: SieveFileIndex =>
      val ofKeys = if (awaitsKeys) index.keyMetrics else Map.empty
      inSession(copy().driverMetrics) ++ index.metrics ++ ofKeys
    case _ => inSession(copy().driverMetrics)
  }

  /**
   * Runs `work` with this scan's session as the thread's active session. A new node takes its session from the thread,
   * and a thread that computes an RDD might have no session.
   */
  private def inSession[A](work: => A): A = if (session == null) work else session.withActive(work)

  private def awaitsKeys: Boolean = dataFilters.exists(RunTimeFilters.awaits)

  /**
   * Waits for the results of the scan's subqueries without holding a lock. Spark's own method holds a lock on the scan
   * while it waits. An adaptive subquery prints the scan's plan before it has a result, and printing the plan needs the
   * same lock.
   */
  override protected def waitForSubqueries(): Unit = {
    val start = System.nanoTime
    if (!FetchedKeys.come(expressions)) lacksKeys = true
    relation.location match {
      case index: SieveFileIndex if awaitsKeys => index.waited(System.nanoTime - start)
      case _ =>
    }
  }

  /** True if a job could not read the keys of a join. */
  @volatile @transient private[sieve] var lacksKeys = false

  /**
   * Spark copies a node by calling the constructor of the node's class with `arguments`. Only the constructor of
   * Spark's own scan takes `arguments`. So this method copies Spark's own scan, and creates a counted scan from the
   * copy.
   */
  override def makeCopy(arguments: Array[AnyRef]): SparkPlan = {
    val counted = inSession(copy().makeCopy(arguments) match {
      case scan: FileSourceScanExec => new SieveScan(scan)
    })
    counted.copyTagsFrom(this)
    counted
  }

  override def clone(): SparkPlan = makeCopy(productIterator.map(_.asInstanceOf[AnyRef]).toArray)

  /** Spark's own scan, with the run-time values in its filters, after the scan has listed its files. */
  @transient protected lazy val listed: FileSourceScanExec = {
    val resolved = RunTimeFilters.resolved(this)
    relation.location match {
      case index: SieveFileIndex => index.received(resolved)
      case _ =>
    }
    val own = inSession(copy(relation = listing, dataFilters = resolved.filters))
    own.selectedPartitions
    counts(own)
    own
  }

  /** Sets the metrics of this scan to the values of another scan's driver metrics. */
  private def counts(other: FileSourceScanExec): Unit = other.driverMetrics.foreach { case (name, metric) =>
    if (!metric.isZero) driverMetrics.get(name).foreach(_.set(metric.value))
  }

  /** True if this scan can read ranges of files; false if it reads only whole files. */
  def readsRanges: Boolean = relation.location match {
    // A bucketed scan reads only whole files, because Spark groups whole files by bucket.
    case _ if bucketedScan || optionalBucketSet.nonEmpty => false
    // With `ignoreCorruptFiles`, Spark skips the rest of a split after the first damaged bytes, so the returned rows
    // depend on how files are split.
    case _ if new FileSourceOptions(CaseInsensitiveMap(relation.options)).ignoreCorruptFiles => false
    case index: SieveFileIndex => !index.showsSplits && !output.exists {
      case FileSourceConstantMetadataAttribute(a) => CountedScan.ofSplits(a.name)
      case _ => false
    }
    case _ => true
  }

  private def listing: HadoopFsRelation = relation.location match {
    case index: RangeListing if readsRanges =>
      relation.copy(location = index.inRanges)(relation.sparkSession)
    case _ => relation
  }

  /** The RDD of Spark's own scan, or an RDD of ranges if the listing restricts files to ranges. */
  override lazy val inputRDD: RDD[InternalRow] = {
    val read =
      // After the listing, the user may have allowed readers to omit rows. The scan then lists its files again without
      // the top-k condition.
      if (TopK.in(dataFilters).nonEmpty && TopK.mayBeMissing(relation)) withoutBound
      else {
        val files = selectedFiles
        if (files.exists { case (_, file) => FileRanges.of(file).nonEmpty }) ranges(files)
        else listed.inputRDD
      }
    sendDriverMetrics()
    read
  }

  private def withoutBound: RDD[InternalRow] = {
    val all = inSession(new SieveScan(copy(dataFilters = TopK.without(dataFilters))))
    val read = all.inputRDD
    counts(all)
    read
  }

  private def ranges(files: Seq[(InternalRow, FileStatusWithMetadata)]): RDD[InternalRow] = {
    val (owner, format, options) = (relation.sparkSession, relation.fileFormat, relation.options)
    val read = inSession(new SieveScan(copy(dataFilters = RunTimeFilters.withoutKeys(dataFilters))))
    val reader = format.buildReaderWithPartitionValues(
      owner, relation.dataSchema, relation.partitionSchema, requiredSchema, read.pushedDownFilters,
      options + (FileFormat.OPTION_RETURNING_BATCH -> supportsColumnar.toString),
      owner.sessionState.newHadoopConfWithOptions(options))
    val tasks = new RangeTasks(owner, format.isSplitable(owner, options, _))
    new FileScanRDD(
      owner, reader, tasks.of(files), StructType(requiredSchema ++ relation.partitionSchema),
      fileConstantMetadataColumns, format.fileConstantMetadataExtractors,
      new FileSourceOptions(CaseInsensitiveMap(options)))
  }

  /**
   * The canonical form of this scan, without the filters that Spark has dropped. Scans with equal canonical forms share
   * exchanges.
   */
  override def doCanonicalize(): FileSourceScanExec = {
    val used = dataFilters.filterNot(Filters.isUnused)
    if (used.size == dataFilters.size) super.doCanonicalize() else copy(dataFilters = used).doCanonicalize()
  }

  /** A counted scan never equals Spark's own scan, because Spark would otherwise keep its own scan in the plan. */
  override def canEqual(other: Any): Boolean = other.isInstanceOf[CountedScan]
  override def equals(other: Any): Boolean = canEqual(other) && super.equals(other)
  override def hashCode: Int = super.hashCode
}

object CountedScan {
  /** Metadata columns that describe the split of a row, and not the row's file. */
  private val ofSplits = Set(FileFormat.FILE_BLOCK_START, FileFormat.FILE_BLOCK_LENGTH)

  /**
   * True if a query calls a function whose result shows how files are split. This method does not examine metadata
   * columns.
   */
  def showsSplits(query: LogicalPlan): Boolean = query.exists(_.expressions.exists(_.exists {
    case _: InputFileBlockStart | _: InputFileBlockLength => true
    case _ => false
  }))

  /**
   * Replaces Spark's scans in a plan by counted scans. A scan stays unchanged if the constructor of Spark's scan takes
   * unexpected arguments.
   */
  def in(plan: SparkPlan, session: SparkSession): SparkPlan =
    if (!FileRanges.areRead(session)) plan
    else plan.transform {
      case scan: FileSourceScanExec => try new SieveScan(scan) catch { case _: LinkageError => scan }
    }

  /** Adds filters to the counted scans in a plan, unless a scan already has an equal filter. */
  def withFilters(plan: SparkPlan, filters: Seq[Expression]): SparkPlan =
    if (filters.isEmpty) plan
    else plan.transform { case scan: CountedScan =>
      val others = filters.filterNot(f => scan.dataFilters.exists(_.semanticEquals(f)))
      new SieveScan(scan.copy(dataFilters = scan.dataFilters ++ others))
    }
}
