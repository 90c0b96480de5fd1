package org.apache.spark.sql.sieve.plan

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, ScalarSubquery}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{DYNAMIC_PRUNING_SUBQUERY, SCALAR_SUBQUERY}
import org.apache.spark.sql.sieve.base.{Compat, OnceLogging, Settings}
import org.apache.spark.sql.sieve.formats.FileRanges

/**
 * A scan whose files are selected by run-time `filters`. It is a node of its own, not a `Filter`, because Spark
 * must neither evaluate these filters on rows, nor merge or push them. Only `SieveStrategy` plans it.
 */
case class RunTimeFilteredScan(child: LogicalPlan, filters: Seq[Expression]) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  // This node must not affect whether Spark broadcasts a side of a join.
  override def stats: Statistics = child.stats
  override def maxRows: Option[Long] = child.maxRows
  override protected def withNewChildInternal(newChild: LogicalPlan): RunTimeFilteredScan =
    copy(child = newChild)
}

object RunTimeFilteredScan {
  /**
   * A chain of projections and filters over such a node: the result is the chain without the node, and the
   * node's filters. None if Spark plans a part of the chain separately, because the part is nondeterministic.
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
 * The rule behind `spark.sieve.join.pruning`. It runs after all rules of Spark that change the sides of joins,
 * because Spark reuses a broadcast only for an equal plan.
 */
class JoinPruning(val session: Compat.Session) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    // Spark optimizes subqueries separately, and later merges equal ones.
    case _: Subquery => plan
    case _ if plan.isStreaming || !JoinPruning.isOn(session) => plan
    case _ => JoinPruning.orUnchanged(plan)(withSubqueries(plan, fetches = true))
  }

  /**
   * Changes subqueries first, because a join may broadcast them, and a broadcast plan must not change later.
   * Subqueries fetch no keys: a subquery runs in a thread of Spark's pool, and would wait there for another
   * query of the same pool.
   */
  private def withSubqueries(plan: LogicalPlan, fetches: Boolean): LogicalPlan =
    if (plan.exists(_.isInstanceOf[RunTimeFilteredScan])) plan
    else new JoinKeys(session, plan.containsPattern(SCALAR_SUBQUERY) match {
      // Spark already has keys of broadcasts, perhaps of broadcasts with subqueries.
      case true if !plan.containsPattern(DYNAMIC_PRUNING_SUBQUERY) => inSubqueries(plan)
      case _ => plan
    }, fetches).filtered

  private def inSubqueries(plan: LogicalPlan): LogicalPlan =
    plan.mapChildren(inSubqueries).transformExpressions {
      case scalar: ScalarSubquery if !scalar.isCorrelated =>
        scalar.withNewPlan(withSubqueries(scalar.plan, fetches = false))
    }
}

object JoinPruning extends OnceLogging {
  /**
   * Adds the rule to a session. The only hook for rules that run last is `experimental`. It does not exist yet
   * while Spark creates a session, and users may set it, too.
   */
  def install(session: Compat.Session): Unit = session.sessionState.experimentalMethods match {
    case methods if methods.extraOptimizations.exists(isOf(session)) =>
    case methods => methods.synchronized {
      // A cloned session has the rules of its original.
      val others = methods.extraOptimizations.filterNot(_.isInstanceOf[JoinPruning])
      methods.extraOptimizations = others :+ new JoinPruning(session)
    }
  }

  private def isOf(session: Compat.Session)(rule: Rule[LogicalPlan]): Boolean = rule match {
    case own: JoinPruning => own.session eq session
    case _ => false
  }

  /**
   * Without dynamic pruning, Spark does not plan such filters. Without reuse of exchanges, it never evaluates
   * them. In a session with columnar plug-ins, the plan keeps Spark's own scans, which would wait for values
   * that they cannot use.
   */
  def isOn(session: Compat.Session): Boolean = {
    val conf = session.sessionState.conf
    Settings.enabled(session) && Settings.joinPruning(session) &&
      conf.dynamicPartitionPruningEnabled && conf.exchangeReuseEnabled &&
      FileRanges.areRead(session)
  }

  /** The plan after a change; the plan itself, with a warning, if the change fails. */
  def orUnchanged(plan: LogicalPlan)(change: => LogicalPlan): LogicalPlan =
    try change
    catch {
      case e @ (NonFatal(_) | _: LinkageError) =>
        warnOnce(s"joins prune no files: $e")
        plan
    }
}

/**
 * Installs the rule into the session whose query is analysed, the earliest hook at which the session is complete. A
 * plan that was already optimized loses its keys, because they belong to another query.
 */
class InstallJoinPruning(session: Compat.Session) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = JoinPruning.orUnchanged(plan) {
    JoinPruning.install(session)
    if (!plan.containsAnyPattern(DYNAMIC_PRUNING_SUBQUERY, SCALAR_SUBQUERY)) plan
    else AnalysisHelper.allowInvokingTransformsInAnalyzer {
      plan.transformDownWithSubqueries { case scan: RunTimeFilteredScan => scan.child }
    }
  }
}
