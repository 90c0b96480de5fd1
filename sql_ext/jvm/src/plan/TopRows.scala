package org.apache.spark.sql.sieve.plan

import scala.util.control.NonFatal
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Max, Min}
import org.apache.spark.sql.catalyst.planning.ScanOperation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.{FileSourceScanExec, FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sieve.ask.{Filters, FirstRows}
import org.apache.spark.sql.sieve.base.OnceLogging
import org.apache.spark.sql.sieve.formats.TableFormat

/**
 * A part of a query that needs the first rows of a scan alone.
 *
 * @param query what Spark plans: a limit over a sort, or an aggregation
 * @param scan  what it takes its rows from: projections and filters over a relation
 * @param first the rows that are wanted, by columns of the relation
 */
final case class TopRows(query: LogicalPlan, scan: LogicalPlan, first: FirstRows)

/**
 * Finds ORDER BY ... LIMIT, MIN and MAX in a plan that is being planned. This is done by a strategy, so
 * on the very plan that will run: no rule merges, copies or moves a scan afterwards, and a plan that
 * adaptive execution makes anew is looked at anew. The plan is not changed, for adaptive execution
 * finds the parts of a query again by the identity of their nodes; the strategy keeps in mind which
 * node it has to plan with a bound.
 */
object TopRows extends OnceLogging {
  /** Of the queries whose planning has begun in this thread, the innermost. */
  private val planned = ThreadLocal.withInitial[Option[TopRows]](() => None)

  /** Plans a part of a query, of whose scan the strategy will then know what is wanted. */
  def within[A](top: TopRows)(plan: => A): A = {
    val outer = planned.get
    planned.set(Some(top))
    try plan finally planned.set(outer)
  }

  /** A query of its own is planned: its nodes may be those of another that was begun before. */
  def forget(): Unit = planned.set(None)

  /** Whether the planning of this very plan has begun. */
  def isBegun(plan: LogicalPlan): Boolean = planned.get.exists(_.query eq plan)

  /** What is wanted of a scan that is to be planned. */
  def of(scan: LogicalPlan): Option[FirstRows] = planned.get.filter(_.scan eq scan).map(_.first)

  /**
   * What a query wants of its only scan, if it wants no more than the first rows.
   *
   * @param indexed the indexed columns of a relation
   */
  def in(query: LogicalPlan, indexed: LogicalRelation => Seq[String] => Boolean): Option[TopRows] =
    try for {
      (scan, first) <- wanted(query)
      bare <- bound(scan, first, indexed)
      // Another place may want other rows of it.
      if query.collect { case node if node eq scan => node }.size == 1
    } yield TopRows(query, scan, bare)
    catch {
      case e @ (NonFatal(_) | _: LinkageError) =>
        warnOnce(s"first rows bound no scan: $e")
        None
    }

  private def wanted(query: LogicalPlan): Option[(LogicalPlan, FirstRows)] = query match {
    case ReturnAnswer(plan) => wanted(plan)
    case Offset(_, limited) => wanted(limited)
    case GlobalLimit(IntegerLiteral(n), plan) => sorted(plan, n)
    case a: Aggregate => extremes(a)
    case _ => None
  }

  /** The sort of which the first rows are wanted, through what passes them on in order. */
  private def sorted(plan: LogicalPlan, rows: Long): Option[(LogicalPlan, FirstRows)] = plan match {
    case GlobalLimit(IntegerLiteral(n), child) => sorted(child, rows.min(n))
    // It cuts each partition of the sorted rows.
    case LocalLimit(IntegerLiteral(n), child) if n >= rows => sorted(child, rows)
    case Offset(IntegerLiteral(n), child) => sorted(child, rows + n)
    case p: Project if p.projectList.forall(_.deterministic) => sorted(p.child, rows)
    // A row after the bound in the first column comes after it whatever the others say.
    case s: Sort if s.global && rows > 0 =>
      Some((s.child, FirstRows(s.order.take(1), rows, isOfValues = false, Nil)))
    case _ => None
  }

  private def extremes(a: Aggregate): Option[(LogicalPlan, FirstRows)] = {
    val found = a.aggregateExpressions.flatMap(_.collect { case e: AggregateExpression => e }).map {
      case e if e.isDistinct || e.filter.nonEmpty => None
      case e => e.aggregateFunction match {
        case Min(child) => Some(SortOrder(child, Ascending))
        case Max(child) => Some(SortOrder(child, Descending))
        case _ => None
      }
    }
    if (found.isEmpty || found.contains(None)) None
    else Some((a.child, FirstRows(found.flatten, 1, isOfValues = true, a.groupingExpressions)))
  }

  /** What is wanted by columns of the relation: bare indexed ones, and partition columns. */
  private def bound(
      scan: LogicalPlan, first: FirstRows,
      indexed: LogicalRelation => Seq[String] => Boolean): Option[FirstRows] = scan match {
    case ScanOperation(projections, Nil, _, relation: LogicalRelation)
        if projections.forall(_.deterministic) => relation.relation match {
      case fs: HadoopFsRelation =>
        val named = AttributeMap(projections.collect { case a: Alias => a.toAttribute -> a.child })
        // A query may write the name of a column in another case.
        val own = AttributeMap(relation.output.map(a => a -> a))
        val bare = first.transform { case a: Attribute => named.getOrElse(a, a) }
          .transform { case a: Attribute => own.getOrElse(a, a) }.asInstanceOf[FirstRows]
        val filters = Filters.of(relation.output, fs)
        lazy val isIndexed = indexed(relation)
        val groups = bare.groups.isEmpty || TableFormat.of(fs).hasPartitionsByPath
        val holds = groups && bare.groups.forall(filters.isPartition) &&
          bare.orders.forall(o => filters.column(o.child).exists(isIndexed))
        if (holds) Some(bare) else None
      case _ => None
    }
    case _ => None
  }

  /**
   * The plan of a scan, with what is wanted of it. It stays as it is where anything but the scan's own
   * listing and filters decides which of its rows there are.
   */
  def bounding(plan: SparkPlan, first: FirstRows): SparkPlan = plan.collectLeaves() match {
    case Seq(scan: CountedScan) if isAlone(plan, scan) => CountedScan.withFilters(plan, Seq(first))
    case _ => plan
  }

  private def isAlone(plan: SparkPlan, scan: FileSourceScanExec): Boolean = {
    val known = ExpressionSet(scan.dataFilters)
    val filters = Filters.of(scan.output, scan.relation)
    scan.optionalBucketSet.isEmpty &&
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
