package org.apache.spark.sql.sieve.plan

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{DYNAMIC_PRUNING_SUBQUERY, LIST_SUBQUERY, SCALAR_SUBQUERY}
import org.apache.spark.sql.sieve.base.{Compat, OnceLogging, Settings}
import org.apache.spark.sql.sieve.formats.FileRanges

/**
 * A scan for which run-time `filters` select the files. The node is not a `Filter`, so that Spark does not evaluate the
 * filters on rows, merge them or push them down. Only `SieveStrategy` plans this node.
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
   * Removes a `RunTimeFilteredScan` that is below projections and filters. Returns the plan without this node, and the
   * node's filters. None if a projection or filter is nondeterministic, because Spark plans such a projection or filter
   * separately.
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
 * The optimizer rule for the setting `spark.sieve.join.pruning`. The rule runs after all rules of Spark that change the
 * sides of joins. Later changes of a side would prevent Spark from reusing the side's broadcast.
 */
class JoinPruning(val session: Compat.Session) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    // Spark optimizes each subquery separately, and later merges subqueries that are equal.
    case _: Subquery => plan
    case _ if plan.isStreaming || !JoinPruning.isOn(session) => plan
    case _ => JoinPruning.orUnchanged(plan)(withSubqueries(plan, fetches = true))
  }

  /**
   * Changes the subqueries of a plan first. If a join broadcasts a plan with a subquery, that plan must not change
   * later. Subqueries get no keys from separate jobs. A subquery runs in a thread pool of Spark, and would wait for
   * another query in the same pool.
   */
  private def withSubqueries(plan: LogicalPlan, fetches: Boolean): LogicalPlan =
    if (plan.exists(_.isInstanceOf[RunTimeFilteredScan])) plan
    else new JoinKeys(session, plan.containsAnyPattern(SCALAR_SUBQUERY, LIST_SUBQUERY) match {
      // If Spark already uses keys of broadcasts, the broadcast plans can contain subqueries. These subqueries must not
      // change.
      case true if !plan.containsPattern(DYNAMIC_PRUNING_SUBQUERY) => inSubqueries(plan)
      case _ => plan
    }, fetches).filtered

  private def inSubqueries(plan: LogicalPlan): LogicalPlan =
    plan.mapChildren(inSubqueries).transformExpressions {
      case scalar: ScalarSubquery if !scalar.isCorrelated =>
        scalar.withNewPlan(withSubqueries(scalar.plan, fetches = false))
      // Through this subquery, a DELETE, UPDATE or MERGE of DataSource V2 finds the files to replace.
      case DynamicPruningExpression(InSubquery(values, files: ListQuery)) if !files.isCorrelated =>
        DynamicPruningExpression(InSubquery(values, files.withNewPlan(withSubqueries(files.plan, fetches = false))))
    }
}

object JoinPruning extends OnceLogging {
  /**
   * Adds the rule to a session. Only the rules in `experimental` run last. While Spark creates a session, the object
   * `experimental` does not exist yet. Users can change the rules in this object, too.
   */
  def install(session: Compat.Session): Unit = session.sessionState.experimentalMethods match {
    case methods if methods.extraOptimizations.exists(isOf(session)) =>
    case methods => methods.synchronized {
      // A cloned session also has the rules of its original session.
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
   * remain in the plan, and would wait for values that these scans cannot use.
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
      case e @ (NonFatal(_) | _: LinkageError) =>
        warnOnce(s"joins prune no files: $e")
        plan
    }
}

/**
 * Installs `JoinPruning` into the session whose query Spark analyses. Analysis is the earliest hook at which the
 * session is complete. If a plan was already optimized, this rule removes the plan's run-time filters, because their
 * keys belong to another query.
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
