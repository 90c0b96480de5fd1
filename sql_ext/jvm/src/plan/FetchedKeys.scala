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
import org.apache.spark.sql.sieve.ask.TopK
import org.apache.spark.sql.sieve.base.{OnceLogging, SieveException}
import org.apache.spark.sql.sieve.formats.{TableFormat, WholeRecords}
import org.apache.spark.sql.types.{DataType, DecimalType, DoubleType, FloatType, StringType}

/**
 * Decides when a separate job may read the keys of one side of a join. This second evaluation of the side must
 * return the same rows, and must cost less than it saves.
 */
object FetchedKeys extends OnceLogging {
  /** A job that reads keys may read at most this share of the bytes that the keys could save: decision 16. */
  private val share = 8
  /** The bytes that two cores read while an empty job runs: decision 16. */
  private val job = 32L << 20

  /**
   * Whether a plan returns the same rows when it runs again. If only one of the runs has a key, the query would
   * lose rows. So the result is true only for known nodes. No such node may list other files, choose among
   * equal rows (a window, a limit) or round differently. A plan with a subquery is excluded, because Spark runs
   * subqueries in one pool, where waiting subqueries could occupy all threads.
   */
  def isRepeatable(plan: LogicalPlan): Boolean = !plan.isStreaming && !plan.exists { node =>
    !isKnown(node) || choosesAmongEquals(node) || node.expressions.exists { e =>
      !e.deterministic || mayDiffer(e) || e.exists(isSubquery)
    }
  }

  /** Subqueries of dynamic partition pruning use a broadcast or are dropped (`JoinKeys`). */
  private def isSubquery(e: Expression): Boolean =
    e.isInstanceOf[SubqueryExpression] && !e.isInstanceOf[DynamicPruningSubquery]

  private def isKnown(node: LogicalPlan): Boolean = node match {
    case _: Project | _: Filter | _: Join | _: Aggregate | _: Union | _: Generate | _: Expand => true
    case _: LocalRelation | _: Range | _: OneRowRelation => true
    case scan: RunTimeFilteredScan => isKnown(scan.child)
    case cached: InMemoryRelation => isRepeatable(cached.cachedPlan)
    case scan: LogicalRelation => scan.relation match {
      // A scan of a whole catalog table lists the partitions that exist when it runs. A Delta table that
      // Delta's rule has not prepared shows its newest version. A damaged record of a text file depends on the
      // columns that are read.
      case files: HadoopFsRelation =>
        TableFormat.isKnown(files) && !files.location.isInstanceOf[CatalogFileIndex] && TableFormat.of(files).isPinned(files.location) &&
          !WholeRecords.isText(files) && !TopK.mayBeMissing(files)
      case _ => false
    }
    case _ => false
  }

  /** The plan by which Spark computes a cached table again if its blocks are lost. */
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

  /** A group keeps the first of its equal keys, and equal keys may differ. Spark has normalized floats before. */
  private def choosesAmongEquals(node: LogicalPlan): Boolean = node match {
    case grouped: Aggregate => !grouped.groupingExpressions.forall(g => isSameIfEqual(g.dataType))
    case _ => false
  }

  /** Whether equal strings are identical, which holds only in the binary collation. */
  private def isSameIfEqual(of: DataType): Boolean = !of.existsRecursively {
    case text: StringType => text != StringType
    case _ => false
  }

  private def isOfRow(e: Expression): Boolean =
    e.deterministic && !mayDiffer(e) && !e.exists(_.isInstanceOf[PlanExpression[_]])

  /**
   * Whether an aggregate depends on the order of rows: a sum of floats, a sum that is NULL after an
   * intermediate overflow, or a choice among equal values such as 0.0 and -0.0.
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
   * Whether the aggregate is `try_sum` or `try_avg`. Each Spark release has the mode in another field, so the
   * value is compared by name.
   */
  private def isTry(sum: AggregateFunction): Boolean =
    sum.productIterator.drop(sum.children.size).exists(_.toString.contains("TRY"))

  /** Whether the sum's decimal type has the maximum precision, so that a sum may overflow. */
  private def mayOverflow(sum: AggregateFunction): Boolean = sum.aggBufferAttributes.head.dataType match {
    case decimal: DecimalType => decimal.precision == DecimalType.MAX_PRECISION
    case _ => false
  }

  private def isOfFloats(of: DataType): Boolean = of.existsRecursively(t => t == DoubleType || t == FloatType)

  /**
   * Whether reading the keys costs little compared with the scans that the keys prune, measured in bytes read.
   * The cost of the build side is the bytes of its leaves, and the same bytes again for each exchange. A scan
   * of unknown size may be small.
   *
   * @param left the bytes of a leaf that remain after indexes skip files; used only if Spark's own estimates do
   *             not decide
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
   * Waits for keys; false if a task failed. The scan then reads all files. The query fails only if the join reads the
   * failing side, which it does not if its other side is empty.
   */
  def come(keys: ExecSubqueryExpression): Boolean =
    try { keys.updateResult(); true }
    catch { case NonFatal(e) =>
      val causes = ExceptionUtils.getThrowableList(e).asScala
      causes.collectFirst { case own: SieveException => own }.foreach(throw _)
      if (isOfTask(causes.last)) {
        warnOnce(s"a join prunes no files, for its keys cannot be read: ${causes.last}")
        false
      } else throw causes.find(!isWrapper(_)).getOrElse(e)
    }

  /** Whether a job failed in a task. A cancelled job ends with an error of Spark's scheduler only. */
  private def isOfTask(root: Throwable): Boolean = root match {
    case _: SparkException | _: InterruptedException | _: CancellationException | _: TimeoutException => false
    case _ => true
  }

  /** Whether an exception only wraps the error of a job that another thread waits for. */
  private def isWrapper(e: Throwable): Boolean = e.isInstanceOf[ExecutionException] || e.getCause.isInstanceOf[ExecutionException]

  /** Spark assumes the greatest size for a partitioned catalog table whose partitions it has not listed. */
  private def isOfKnownSize(scan: LogicalRelation): Boolean = scan.relation match {
    case files: HadoopFsRelation =>
      !files.location.isInstanceOf[CatalogFileIndex] || scan.catalogTable.exists(_.stats.nonEmpty)
    case _ => true
  }
}
