package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Max, Min}
import org.apache.spark.sql.catalyst.planning.ScanOperation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.{FileSourceScanExec, FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sieve.predicate.{Filters, IndexedColumns, TopK}
import org.apache.spark.sql.sieve.base.{Failure, OnceLogging}
import org.apache.spark.sql.sieve.formats.TableFormat

/**
 * A part of a query that needs only the first rows of one scan.
 *
 * @param query the plan: a limit over a sort, or an aggregation
 * @param scan  the input of `query`: projections and filters over a relation
 * @param first the top-k condition, with columns of the relation
 */
final case class TopKQuery(query: LogicalPlan, scan: LogicalPlan, first: TopK)

/**
 * Finds ORDER BY ... LIMIT, MIN and MAX while Spark plans a query. A planner strategy calls this object, because the
 * plan is then final: no rule merges, copies or moves a scan any more. Adaptive execution calls the strategy again for
 * the same query. The strategy must not change the plan, because adaptive execution identifies the parts of a query by
 * node objects. Instead, this object remembers which scan gets a top-k condition.
 */
object TopKQuery extends OnceLogging {
  /** The top-k query that this thread is planning; the innermost one if top-k queries are nested. */
  private val planned = ThreadLocal.withInitial[Option[TopKQuery]](() => None)

  /**
   * Runs `plan`, which plans a top-k query. While `plan` runs, `of` returns the top-k condition for the query's scan.
   */
  def within[A](top: TopKQuery)(plan: => A): A = {
    val outer = planned.get
    planned.set(Some(top))
    try plan finally planned.set(outer)
  }

  /**
   * Forgets the top-k query that this thread was planning, because a new query can share nodes with the earlier query.
   */
  def forget(): Unit = planned.set(None)

  /** True if this thread is already planning this top-k query. */
  def isBegun(plan: LogicalPlan): Boolean = planned.get.exists(_.query eq plan)

  /**
   * The top-k condition of a scan. Returns None if the query that this thread is planning needs all rows of the scan.
   */
  def of(scan: LogicalPlan): Option[TopK] = planned.get.filter(_.scan eq scan).map(_.first)

  /**
   * Recognises a top-k query. Returns None if the query has several scans, or if it needs more than a scan's first
   * rows.
   *
   * @param indexed returns the relation of a scan's files, and the scan's indexed columns
   */
  def in(query: LogicalPlan, indexed: LogicalPlan => Option[(LogicalRelation, IndexedColumns)]): Option[TopKQuery] =
    try for {
      (scan, first) <- wanted(query)
      bare <- bound(scan, first, indexed)
      // If the query contains the scan twice, the other occurrence may need other rows of the scan.
      if query.collect { case node if node eq scan => node }.size == 1
    } yield TopKQuery(query, scan, bare)
    catch {
      case e @ Failure() =>
        warnOnce(s"no scan is bounded by its first rows: $e")
        None
    }

  private def wanted(query: LogicalPlan): Option[(LogicalPlan, TopK)] = query match {
    case ReturnAnswer(plan) => wanted(plan)
    case Offset(_, limited) => wanted(limited)
    case GlobalLimit(IntegerLiteral(n), plan) => sorted(plan, n)
    case a: Aggregate => extremes(a)
    case _ => None
  }

  /**
   * Finds the sort below `plan`, if `plan` needs only the first rows of the sort. All nodes above the sort must keep
   * the order of the rows.
   */
  private def sorted(plan: LogicalPlan, rows: Long): Option[(LogicalPlan, TopK)] = plan match {
    case GlobalLimit(IntegerLiteral(n), child) => sorted(child, rows.min(n))
    // A local limit keeps the first `n` rows of each sorted partition, so it keeps all rows that the query needs.
    case LocalLimit(IntegerLiteral(n), child) if n >= rows => sorted(child, rows)
    case Offset(IntegerLiteral(n), child) => sorted(child, rows + n)
    case p: Project if p.projectList.forall(_.deterministic) => sorted(p.child, rows)
    // The condition needs only the first column of the sort order. If a row comes after the last needed row in the
    // order of this column, it also comes later in the whole sort order.
    case s: Sort if s.global && rows > 0 =>
      Some((s.child, TopK(s.order.take(1), rows, isOfValues = false, Nil)))
    case _ => None
  }

  private def extremes(a: Aggregate): Option[(LogicalPlan, TopK)] = {
    val found = a.aggregateExpressions.flatMap(_.collect { case e: AggregateExpression => e }).map {
      case e if e.isDistinct || e.filter.nonEmpty => None
      case e => e.aggregateFunction match {
        case Min(child) => Some(SortOrder(child, Ascending))
        case Max(child) => Some(SortOrder(child, Descending))
        case _ => None
      }
    }
    if (found.isEmpty || found.contains(None)) None
    else Some((a.child, TopK(found.flatten, 1, isOfValues = true, a.groupingExpressions)))
  }

  /**
   * Returns the top-k condition with the columns of the relation. Returns None if a column of the sort order is not
   * indexed, or if a grouping column is not a partition column.
   */
  private def bound(
      scan: LogicalPlan, first: TopK,
      indexed: LogicalPlan => Option[(LogicalRelation, IndexedColumns)]): Option[TopK] = scan match {
    case ScanOperation(projections, Nil, _, leaf) if projections.forall(_.deterministic) =>
      indexed(leaf).flatMap { case (relation, columns) =>
        val fs = relation.relation.asInstanceOf[HadoopFsRelation]
        val named = AttributeMap(projections.collect { case a: Alias => a.toAttribute -> a.child })
        // A query can spell the name of a column in another case.
        val own = AttributeMap(relation.output.map(a => a -> a))
        val bare = first.transform { case a: Attribute => named.getOrElse(a, a) }
          .transform { case a: Attribute => own.getOrElse(a, a) }.asInstanceOf[TopK]
        val filters = Filters.of(relation.output, fs)
        val groups = bare.groups.isEmpty || TableFormat.of(fs).hasPartitionsByPath
        val holds = groups && bare.groups.forall(filters.isPartition) && bare.orders.forall(o => columns.holds(o.child))
        if (holds) Some(bare) else None
      }
    case _ => None
  }

  /**
   * Adds a top-k condition to the scan of a plan. Returns the plan unchanged if its rows depend on anything other than
   * the scan's listing and filters.
   */
  def bounding(plan: SparkPlan, first: TopK): SparkPlan = plan.collectLeaves() match {
    case Seq(scan: CountedScan) if isAlone(plan, scan) => CountedScan.withFilters(plan, Seq(first))
    case _ => plan
  }

  private def isAlone(plan: SparkPlan, scan: FileSourceScanExec): Boolean = {
    val known = ExpressionSet(scan.dataFilters)
    val filters = scan.relation.location match {
      case index: SieveFileIndex => Filters.of(scan.output, scan.relation, index.expressions)
      case _ => Filters.of(scan.output, scan.relation)
    }
    val format = TableFormat.of(scan.relation)
    scan.optionalBucketSet.isEmpty && !scan.dataFilters.exists(format.addsFilter) &&
      !scan.partitionFilters.exists(_.exists(_.isInstanceOf[PlanExpression[_]])) &&
      scan.dataFilters.forall(filters.isNegatable) && !plan.exists {
        case FilterExec(condition, _) => !conjuncts(condition).forall(known.contains)
        case p: ProjectExec => !p.projectList.forall(_.deterministic)
        case other => !(other eq scan)
      }
  }

  private def conjuncts(e: Expression): Seq[Expression] = e match {
    case And(a, b) => conjuncts(a) ++ conjuncts(b)
    case _ => Seq(e)
  }
}
