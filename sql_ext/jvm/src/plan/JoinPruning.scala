package org.apache.spark.sql.sieve.plan


import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{DYNAMIC_PRUNING_SUBQUERY, LIST_SUBQUERY, SCALAR_SUBQUERY}
import org.apache.spark.sql.sieve.base.{Compat, Failure, OnceLogging, Settings}
import org.apache.spark.sql.sieve.formats.FileRanges

/**
 * A scan whose files are selected by run-time filters. This node is not a `Filter`, so Spark neither evaluates the
 * filters on rows, nor merges or moves them. Only `SieveStrategy` plans this node.
 */
case class RunTimeFilteredScan(child: LogicalPlan, filters: Seq[Expression]) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  // Returns the child's statistics, because this node must not change which side of a join Spark broadcasts.
  override def stats: Statistics = child.stats
  override def maxRows: Option[Long] = child.maxRows
  override protected def withNewChildInternal(newChild: LogicalPlan): RunTimeFilteredScan =
    copy(child = newChild)
}

object RunTimeFilteredScan {
  /**
   * Removes a `RunTimeFilteredScan` that is below projections and filters. Returns two values: the plan without this
   * node, and the filters of the node. Returns None if the node below the projections and filters is not a
   * `RunTimeFilteredScan`. Also returns None if a projection or filter is nondeterministic, because Spark plans
   * nondeterministic nodes separately.
   */
  def takenOff(plan: LogicalPlan): Option[(LogicalPlan, Seq[Expression])] = plan match {
    case scan: RunTimeFilteredScan => Some((scan.child, scan.filters))
    case _: Project | _: Filter if plan.expressions.forall(_.deterministic) =>
      takenOff(plan.children.head).map { case (bare, filters) =>
        (plan.withNewChildren(Seq(bare)), filters)
      }
    case _ => None
  }
}

/**
 * The optimizer rule for the setting `spark.sieve.join.pruning`. This rule runs after all rules of Spark that change
 * the sides of joins. If a side changed later, Spark could not reuse the side's broadcast.
 */
class JoinPruning(val session: Compat.Session) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    // Spark optimizes each subquery separately, and later merges equal subqueries. So this rule changes subqueries only
    // together with the whole query.
    case _: Subquery => plan
    case _ if plan.isStreaming || !JoinPruning.isOn(session) => plan
    case _ => JoinPruning.orUnchanged(plan)(withSubqueries(plan, fetches = true))
  }

  /**
   * Changes the subqueries of a plan, and then the plan. The subqueries must be changed first, because a plan that a
   * join broadcasts must not change later. Joins in a subquery get no keys from separate jobs. Otherwise, the subquery
   * would occupy a thread of Spark's pool while it waits for another query in the same pool.
   */
  private def withSubqueries(plan: LogicalPlan, fetches: Boolean): LogicalPlan =
    if (plan.exists(_.isInstanceOf[RunTimeFilteredScan])) plan
    else new JoinKeys(session, plan.containsAnyPattern(SCALAR_SUBQUERY, LIST_SUBQUERY) match {
      // If Spark already prunes partitions by the keys of broadcasts, the broadcast plans must not change. A broadcast
      // plan can contain subqueries, so the subqueries also stay unchanged.
      case true if !plan.containsPattern(DYNAMIC_PRUNING_SUBQUERY) => inSubqueries(plan)
      case _ => plan
    }, fetches).filtered

  private def inSubqueries(plan: LogicalPlan): LogicalPlan =
    plan.mapChildren(inSubqueries).transformExpressions {
      case scalar: ScalarSubquery if !scalar.isCorrelated =>
        scalar.withNewPlan(withSubqueries(scalar.plan, fetches = false))
      // With this subquery, a DELETE, UPDATE or MERGE on a DataSource V2 table finds the files that it replaces.
      case DynamicPruningExpression(InSubquery(values, files: ListQuery)) if !files.isCorrelated =>
        DynamicPruningExpression(InSubquery(values, files.withNewPlan(withSubqueries(files.plan, fetches = false))))
    }
}

object JoinPruning extends OnceLogging {
  /**
   * Adds the rule to the session's `experimentalMethods`, because only the rules in `experimentalMethods` run last.
   * While Spark creates the session, `experimentalMethods` does not exist yet. Later, users can change the rules in
   * `experimentalMethods`. So `InstallJoinPruning` calls this method for each query.
   */
  def install(session: Compat.Session): Unit = session.sessionState.experimentalMethods match {
    case methods if methods.extraOptimizations.exists(isOf(session)) =>
    case methods => methods.synchronized {
      // A cloned session also has the `JoinPruning` rule of its original session, and this code removes that rule.
      val others = methods.extraOptimizations.filterNot(_.isInstanceOf[JoinPruning])
      methods.extraOptimizations = others :+ new JoinPruning(session)
    }
  }

  private def isOf(session: Compat.Session)(rule: Rule[LogicalPlan]): Boolean = rule match {
    case own: JoinPruning => own.session eq session
    case _ => false
  }

  /**
   * True if the rule can be used in a session. Without dynamic partition pruning, Spark does not plan run-time filters.
   * Without reuse of exchanges, Spark never evaluates run-time filters. With columnar plug-ins, Spark's own scans
   * remain in the plan, and would wait for values that they cannot use.
   */
  def isOn(session: Compat.Session): Boolean = {
    val conf = session.sessionState.conf
    Settings.enabled(session) && Settings.joinPruning(session) &&
      conf.dynamicPartitionPruningEnabled && conf.exchangeReuseEnabled &&
      FileRanges.areRead(session)
  }

  /** Returns the changed plan. If the change fails, logs a warning and returns the original plan. */
  def orUnchanged(plan: LogicalPlan)(change: => LogicalPlan): LogicalPlan =
    try change
    catch {
      case e @ Failure() =>
        warnOnce(s"joins prune no files: $e")
        plan
    }
}

/**
 * Installs `JoinPruning` into a session when Spark analyses a query. The session is incomplete before Spark analyses a
 * query. If a plan has already been optimized once, removes the plan's run-time filters, because the filters' keys
 * belong to another query.
 */
class InstallJoinPruning(session: Compat.Session) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = JoinPruning.orUnchanged(plan) {
    JoinPruning.install(session)
    if (!plan.containsAnyPattern(DYNAMIC_PRUNING_SUBQUERY, LIST_SUBQUERY, SCALAR_SUBQUERY)) plan
    else AnalysisHelper.allowInvokingTransformsInAnalyzer {
      plan.transformDownWithSubqueries { case scan: RunTimeFilteredScan => scan.child }
    }
  }
}
