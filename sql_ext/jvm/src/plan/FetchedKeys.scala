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
import org.apache.spark.sql.sieve.ask.FirstRows
import org.apache.spark.sql.sieve.base.{OnceLogging, SieveException}
import org.apache.spark.sql.sieve.formats.{TableFormat, WholeRecords}
import org.apache.spark.sql.types.{DataType, DecimalType, DoubleType, FloatType, StringType}

/**
 * The side of a join that is evaluated a second time, for its keys alone: when this gives the same
 * rows, and when it is worth its price.
 */
object FetchedKeys extends OnceLogging {
  /** A job that reads keys may cost at most this part of the bytes that the keys could save: decision 16. */
  private val share = 8
  /** The bytes that two cores read while an empty job runs: decision 16. */
  private val job = 32L << 20

  /**
   * Whether a plan gives the very same rows when it is run again at once. Only what is known to do so:
   * a key that the second run has and the first had not would be a lost row. Hence none that may list
   * other files by then, choose among equals (a window, a limit), or round differently. Nor one with a
   * subquery: Spark runs them all in one pool, where those that wait for others may hold every thread.
   */
  def isRepeatable(plan: LogicalPlan): Boolean = !plan.isStreaming && !plan.exists { node =>
    !isKnown(node) || choosesAmongEquals(node) || node.expressions.exists { e =>
      !e.deterministic || mayDiffer(e) || e.exists(isSubquery)
    }
  }

  /** Spark's keys of partitions wait for a broadcast, or are none (`JoinKeys`). */
  private def isSubquery(e: Expression): Boolean =
    e.isInstanceOf[SubqueryExpression] && !e.isInstanceOf[DynamicPruningSubquery]

  private def isKnown(node: LogicalPlan): Boolean = node match {
    case _: Project | _: Filter | _: Join | _: Aggregate | _: Union | _: Generate | _: Expand => true
    case _: LocalRelation | _: Range | _: OneRowRelation => true
    case scan: RunTimeFilteredScan => isKnown(scan.child)
    case cached: InMemoryRelation => isRepeatable(cached.cachedPlan)
    case scan: LogicalRelation => scan.relation match {
      // Each scan of a whole catalog table asks the metastore for the partitions that there are by then, and one of
      // a Delta table whose own rule has not prepared it for the newest version;
      // what a damaged record of a text shows depends on the columns that are read.
      case files: HadoopFsRelation =>
        TableFormat.isKnown(files) && !files.location.isInstanceOf[CatalogFileIndex] && TableFormat.of(files).isPinned(files.location) &&
          !WholeRecords.isText(files) && !FirstRows.mayBeMissing(files)
      case _ => false
    }
    case _ => false
  }

  /** What a cached table is made of again where its blocks are lost. */
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
    case scan: FileSourceScanExec => !FirstRows.mayBeMissing(scan.relation)
    case _ => false
  }

  /** Groups have the first of their keys that are equal, where these may differ. Of floats Spark makes one of them before. */
  private def choosesAmongEquals(node: LogicalPlan): Boolean = node match {
    case grouped: Aggregate => !grouped.groupingExpressions.forall(g => isSameIfEqual(g.dataType))
    case _ => false
  }

  /** Whether texts that are equal are the same: not in another collation than that of bytes. */
  private def isSameIfEqual(of: DataType): Boolean = !of.existsRecursively {
    case text: StringType => text != StringType
    case _ => false
  }

  private def isOfRow(e: Expression): Boolean =
    e.deterministic && !mayDiffer(e) && !e.exists(_.isInstanceOf[PlanExpression[_]])

  /**
   * Whether an aggregate depends on the order in which rows come, as sums of floats do, sums that are NULL if they
   * overflow on the way, and choices among equals: 0.0 and -0.0 are.
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

  /** Whether it is `try_sum` or `try_avg`: by the name of an enumeration, which each Spark has in another field. */
  private def isTry(sum: AggregateFunction): Boolean =
    sum.productIterator.drop(sum.children.size).exists(_.toString.contains("TRY"))

  /** Whether decimals are summed in all digits that there are, not in so many more than theirs that no sum needs them. */
  private def mayOverflow(sum: AggregateFunction): Boolean = sum.aggBufferAttributes.head.dataType match {
    case decimal: DecimalType => decimal.precision == DecimalType.MAX_PRECISION
    case _ => false
  }

  private def isOfFloats(of: DataType): Boolean = of.existsRecursively(t => t == DoubleType || t == FloatType)

  /**
   * Whether the work for the keys is small beside that of the scans which they prune, both by the bytes that
   * are read: the build side reads its own, and again as much for each exchange above them. A scan of
   * unknown size may be small.
   *
   * @param left the bytes of a leaf that indexes leave; asked only where Spark's own estimates do not decide
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
   * Waits for keys, and tells whether they have come. If a task fails there are none, and the scan reads all files: a
   * join whose other side is empty never reads the side that fails, and one that does fails by itself.
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

  /** Whether a job ended for what a task ran. One that was cancelled ends with an error of Spark's scheduler alone. */
  private def isOfTask(root: Throwable): Boolean = root match {
    case _: SparkException | _: InterruptedException | _: CancellationException | _: TimeoutException => false
    case _ => true
  }

  /** What a thread that waits for a job puts around its error. */
  private def isWrapper(e: Throwable): Boolean = e.isInstanceOf[ExecutionException] || e.getCause.isInstanceOf[ExecutionException]

  /** Of partitions in a catalog that have not been listed yet Spark knows no size, and takes the greatest there is. */
  private def isOfKnownSize(scan: LogicalRelation): Boolean = scan.relation match {
    case files: HadoopFsRelation =>
      !files.location.isInstanceOf[CatalogFileIndex] || scan.catalogTable.exists(_.stats.nonEmpty)
    case _ => true
  }
}
