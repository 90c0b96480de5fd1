package org.apache.spark.sql.sieve

import org.apache.spark.sql.catalyst.expressions.{Expression, PlanExpression, SubqueryExpression}
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types.{DoubleType, FloatType}

/**
 * The side of a join that is evaluated a second time, for its keys alone: when this gives the same
 * rows, and when it is worth its price.
 */
object FetchedKeys {
  private val share = Policy.limit("fetched_keys_share")
  private val job = Policy.limit("fetched_keys_job_bytes")

  /**
   * Whether a plan gives the very same rows when it is run again at once. Only what is known to do so:
   * a key that the second run has and the first had not would be a lost row. Hence none that may list
   * other files by then, choose among equals (a window, a limit), or round differently.
   */
  def isRepeatable(plan: LogicalPlan): Boolean = !plan.isStreaming && !plan.exists { node =>
    !isKnown(node) || node.expressions.exists(e => !e.deterministic || mayDiffer(e) || e.exists {
      case s: SubqueryExpression => !isRepeatable(s.plan)
      case _ => false
    })
  }

  private def isKnown(node: LogicalPlan): Boolean = node match {
    case _: Project | _: Filter | _: Join | _: Aggregate | _: Union | _: Generate | _: Expand => true
    case _: LocalRelation | _: Range | _: OneRowRelation => true
    case scan: RunTimeFilteredScan => isKnown(scan.child)
    case cached: InMemoryRelation => isRepeatable(cached.cachedPlan)
    case scan: LogicalRelation => scan.relation match {
      // Each scan of a whole catalog table asks the metastore for the partitions that there are by then;
      // what a damaged record of a text shows depends on the columns that are read.
      case files: HadoopFsRelation =>
        SieveStrategy.known(files) && !files.location.isInstanceOf[CatalogFileIndex] &&
          !WholeRecords.isText(files) && !FirstRows.mayBeMissing(files)
      case _ => false
    }
    case _ => false
  }

  /** What a cached table is made of again where its blocks are lost. */
  private def isRepeatable(plan: SparkPlan): Boolean = plan match {
    case adaptive: AdaptiveSparkPlanExec => isRepeatable(adaptive.inputPlan)
    case _: LimitExec | _: TakeOrderedAndProjectExec | _: SampleExec | _: window.WindowExecBase => false
    case node => node.expressions.forall(isOfRow) &&
      node.children.forall(isRepeatable(_: SparkPlan)) && (node.children.nonEmpty || (node match {
        case _: FileSourceScanExec | _: LocalTableScanExec | _: RangeExec => true
        case cached: columnar.InMemoryTableScanExec => isRepeatable(cached.relation.cachedPlan)
        case _ => false
      }))
  }

  private def isOfRow(e: Expression): Boolean =
    e.deterministic && !mayDiffer(e) && !e.exists(_.isInstanceOf[PlanExpression[_]])

  /** Whether an aggregate depends on the order in which rows come, as sums of floats do and choices among equals. */
  private def mayDiffer(e: Expression): Boolean = e.exists {
    case a: AggregateExpression => a.aggregateFunction match {
      case _: Count | _: Min | _: Max => false
      case _: Sum | _: Average => a.dataType == DoubleType || a.dataType == FloatType
      case _ => true
    }
    case _ => false
  }

  /**
   * Whether the work for the keys is small beside that of the scans which they prune, both by the sizes
   * of tables: the build side reads its own, and again as much for each exchange above them.
   */
  def isCheap(build: LogicalPlan, scans: Seq[LogicalRelation]): Boolean = {
    val exchanges = build.collect { case node @ (_: Join | _: Aggregate) => node }.size
    val cost = build.collectLeaves().map(_.stats.sizeInBytes).sum * (1 + exchanges) + job
    cost * share <= scans.map(_.stats.sizeInBytes).sum
  }
}
