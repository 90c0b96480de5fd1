package org.apache.spark.sql.sieve.plan

import java.util.concurrent.{CancellationException, ExecutionException, TimeoutException}
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import org.apache.commons.lang3.exception.ExceptionUtils
import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression, PlanExpression, SubqueryExpression}
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.sieve.predicate.TopK
import org.apache.spark.sql.sieve.base.{OnceLogging, SieveException}
import org.apache.spark.sql.sieve.formats.{TableFormat, WholeRecords}
import org.apache.spark.sql.types.{DataType, DecimalType, DoubleType, FloatType, StringType}

/**
 * Decides when a separate job may read the keys of one side of a join. The job evaluates that side a second time, so
 * the side must return the same rows in both runs. The job must also cost less than the scans that the keys prune.
 */
object FetchedKeys extends OnceLogging {
  /** A job that reads keys may cost at most one eighth of the bytes in the scans that the keys prune (decision 16). */
  private val share = 8
  /** The cost of an empty job, as the number of bytes that two cores could read while the job runs (decision 16). */
  private val job = 32L << 20

  /**
   * True if a plan returns the same rows in each run. If the join later saw a key that the job had not read, the query
   * would lose rows. So this method accepts only nodes whose results certainly repeat. In a second run, the node must
   * list the same files, choose the same rows among equal rows, and round in the same way. A window or a limit, for
   * example, may choose other rows. Spark runs all subqueries in one thread pool, and waiting subqueries could occupy
   * all threads of the pool. So this method refuses plans with subqueries.
   */
  def isRepeatable(plan: LogicalPlan): Boolean = !plan.isStreaming && !plan.exists { node =>
    !isKnown(node) || choosesAmongEquals(node) || node.expressions.exists { e =>
      !e.deterministic || mayDiffer(e) || e.exists(isSubquery)
    }
  }

  /**
   * True for a subquery that does not belong to dynamic partition pruning. Subqueries of dynamic partition pruning use
   * a broadcast, or `KeySource` removes them.
   */
  private def isSubquery(e: Expression): Boolean =
    e.isInstanceOf[SubqueryExpression] && !e.isInstanceOf[DynamicPruningSubquery]

  private def isKnown(node: LogicalPlan): Boolean = node match {
    case _: Project | _: Filter | _: Join | _: Aggregate | _: Union | _: Generate | _: Expand => true
    case _: LocalRelation | _: Range | _: OneRowRelation => true
    case scan: RunTimeFilteredScan => isKnown(scan.child)
    case cached: InMemoryRelation => isRepeatable(cached.cachedPlan)
    case source: DataSourceV2ScanRelation => TableFormat.isOfSnapshot(source.scan)
    // Delta's MERGE stores its source as a checkpoint. If Spark loses a block of a complete checkpoint, the query
    // fails.
    case stored: LogicalRDD => stored.rdd.isCheckpointed
    case scan: LogicalRelation => scan.relation match {
      // The following condition excludes scans that can return other rows in a second run. A scan of a whole catalog
      // table lists the partitions at the time of the run. A Delta table whose version is not fixed shows the newest
      // version. In a text file, the values of a damaged record depend on the scanned columns. A reader that may omit
      // rows can omit different rows in each run.
      case files: HadoopFsRelation =>
        TableFormat.isKnown(files) && !files.location.isInstanceOf[CatalogFileIndex] && TableFormat.of(files).isPinned(files.location) &&
          !WholeRecords.isText(files) && !TopK.mayBeMissing(files)
      case _ => false
    }
    case _ => false
  }

  /**
   * True if a physical plan returns the same rows in each run. If Spark loses cached blocks of a table, it runs the
   * plan of the cached table again.
   */
  private def isRepeatable(plan: SparkPlan): Boolean = plan match {
    case adaptive: AdaptiveSparkPlanExec => isRepeatable(adaptive.inputPlan)
    case cached: columnar.InMemoryTableScanExec => isRepeatable(cached.relation.cachedPlan)
    case reused: exchange.ReusedExchangeExec => isRepeatable(reused.child: SparkPlan)
    case node => isKnown(node) && node.expressions.forall(isOfRow) && node.children.forall(isRepeatable(_: SparkPlan))
  }

  private def isKnown(node: SparkPlan): Boolean = node match {
    case _: ProjectExec | _: FilterExec | _: joins.BaseJoinExec | _: UnionExec | _: GenerateExec | _: ExpandExec => true
    case grouped: aggregate.BaseAggregateExec => grouped.groupingExpressions.forall(g => isSameIfEqual(g.dataType))
    case _: SortExec | _: exchange.Exchange | _: CoalesceExec => true
    case _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowTransition => true
    case _: LocalTableScanExec | _: RangeExec => true
    case scan: FileSourceScanExec => !TopK.mayBeMissing(scan.relation)
    case _ => false
  }

  /**
   * True if a node returns one of several keys that are equal but can have different bytes. An aggregate, for example,
   * returns the first key of each group. Floats do not count, because Spark has already normalized them.
   */
  private def choosesAmongEquals(node: LogicalPlan): Boolean = node match {
    case grouped: Aggregate => !grouped.groupingExpressions.forall(g => isSameIfEqual(g.dataType))
    case _ => false
  }

  /**
   * True if equal values of a type always have equal bytes. Equal strings have equal bytes only in the binary
   * collation.
   */
  private def isSameIfEqual(of: DataType): Boolean = !of.existsRecursively {
    case text: StringType => text != StringType
    case _ => false
  }

  private def isOfRow(e: Expression): Boolean =
    e.deterministic && !mayDiffer(e) && !e.exists(_.isInstanceOf[PlanExpression[_]])

  /**
   * True if the result of an aggregate depends on the order of rows. Examples are a sum of floats, a sum that is NULL
   * after an intermediate overflow, and a MIN that chooses between 0.0 and -0.0.
   */
  private def mayDiffer(e: Expression): Boolean = e.exists {
    case a: AggregateExpression => a.aggregateFunction match {
      case _: Count => false
      case sum @ (_: Sum | _: Average) => isTry(sum) || isOfFloats(a.dataType) || mayOverflow(sum)
      case _: Min | _: Max => isOfFloats(a.dataType) || !isSameIfEqual(a.dataType)
      case _ => true
    }
    case _ => false
  }

  /**
   * True if the aggregate is `try_sum` or `try_avg`. The field with the evaluation mode differs between releases of
   * Spark, so this method searches for the name of the mode.
   */
  private def isTry(sum: AggregateFunction): Boolean =
    sum.productIterator.drop(sum.children.size).exists(_.toString.contains("TRY"))

  /** True if a sum's decimal type has the maximum precision. A sum of smaller precision cannot overflow. */
  private def mayOverflow(sum: AggregateFunction): Boolean = sum.aggBufferAttributes.head.dataType match {
    case decimal: DecimalType => decimal.precision == DecimalType.MAX_PRECISION
    case _ => false
  }

  private def isOfFloats(of: DataType): Boolean = of.existsRecursively(t => t == DoubleType || t == FloatType)

  /**
   * True if reading the keys costs little compared with the scans that the keys prune. Costs are measured in bytes. The
   * cost of the build side is the size of its leaves. Each join or aggregate adds the leaves' size once more, because a
   * join or an aggregate can need an exchange. A scan of unknown size does not count as a pruned scan, because it might
   * be small.
   *
   * @param left returns the bytes that a leaf reads after indexes have skipped files; called only if Spark's own
   *             estimates do not decide
   */
  def isCheap(build: LogicalPlan, scans: Seq[LogicalRelation], left: BytesLeft): Boolean = {
    val exchanges = build.collect { case node @ (_: Join | _: Aggregate) => node }.size
    def cost(bytes: LogicalPlan => BigInt) = build.collectLeaves().map(bytes).sum * (1 + exchanges)
    def pays(cost: BigInt, saved: BigInt) = (cost + job) * share <= saved
    val estimated: LogicalPlan => BigInt = _.stats.sizeInBytes
    val sized = scans.filter(isOfKnownSize)
    lazy val saved = sized.map(left(_)).sum
    pays(0, sized.map(estimated).sum) && (pays(cost(estimated), saved) || pays(cost(left(_)), saved))
  }

  /**
   * Waits for keys. Returns false if a task failed, or if Spark aborted the job. The scan must then read all files. If
   * the other side of the join is empty, the join never reads the failing side. So the query must not fail at this
   * point.
   */
  def come(keys: ExecSubqueryExpression): Boolean =
    try { keys.updateResult(); true }
    catch { case NonFatal(e) =>
      val causes = ExceptionUtils.getThrowableList(e).asScala
      causes.collectFirst { case own: SieveException => own }.foreach(throw _)
      if (isFailureOfJob(causes.last)) {
        warnOnce(s"a join prunes no files, because its keys cannot be read: ${causes.last}")
        false
      } else throw causes.find(!isWrapper(_)).getOrElse(e)
    }

  /** Waits for the results of a scan's subqueries. Returns false if the keys of a join could not be read. */
  def come(expressions: Seq[Expression]): Boolean = expressions.map {
    case keys: AmongKeys => subqueries(keys).forall(come(_: ExecSubqueryExpression))
    case other =>
      subqueries(other).foreach(_.updateResult())
      true
  }.forall(identity)

  private def subqueries(of: Expression): Seq[ExecSubqueryExpression] = of.collect { case s: ExecSubqueryExpression => s }

  /**
   * True if the root cause of an exception is an error in a task or an aborted job. For example, Spark aborts a job
   * whose result is larger than `spark.driver.maxResultSize`. A cancelled job ends with another error of Spark's
   * scheduler.
   */
  private def isFailureOfJob(root: Throwable): Boolean = root match {
    case aborted: SparkException => Option(aborted.getMessage).exists(_.startsWith("Job aborted due to stage failure"))
    case _: InterruptedException | _: CancellationException | _: TimeoutException => false
    case _ => true
  }

  /** True if an exception only wraps the error of a job that another thread started. */
  private def isWrapper(e: Throwable): Boolean = e.isInstanceOf[ExecutionException] || e.getCause.isInstanceOf[ExecutionException]

  /**
   * True if Spark knows the size of a scan. For a partitioned catalog table without statistics, Spark assumes the
   * greatest possible size until it has listed the partitions.
   */
  private def isOfKnownSize(scan: LogicalRelation): Boolean = scan.relation match {
    case files: HadoopFsRelation =>
      !files.location.isInstanceOf[CatalogFileIndex] || scan.catalogTable.exists(_.stats.nonEmpty)
    case _ => true
  }
}
