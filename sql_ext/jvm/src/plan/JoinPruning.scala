package org.apache.spark.sql.sieve.plan

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, ScalarSubquery}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{DYNAMIC_PRUNING_SUBQUERY, SCALAR_SUBQUERY}
import org.apache.spark.sql.sieve.base.{Compat, OnceLogging, Settings}
import org.apache.spark.sql.sieve.formats.FileRanges

/**
 * A scan of a table whose files are picked by `filters`, which have their values only while the
 * query runs. It is a node of its own, not a `Filter`: Spark must neither evaluate these filters on
 * rows, nor merge or push them. `SieveStrategy` alone plans it.
 */
case class RunTimeFilteredScan(child: LogicalPlan, filters: Seq[Expression]) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  // Whether a join is a broadcast must not depend on this node.
  override def stats: Statistics = child.stats
  override def maxRows: Option[Long] = child.maxRows
  override protected def withNewChildInternal(newChild: LogicalPlan): RunTimeFilteredScan =
    copy(child = newChild)
}

object RunTimeFilteredScan {
  /**
   * A chain of projections and filters over such a node: the chain without it, and its filters. None
   * where Spark plans a part of the chain by itself, as it does with what is not deterministic.
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
 * The rule that lets joins prune: `spark.sieve.join.pruning`. It has to see the plan that will be
 * planned, since Spark reuses a broadcast only for the very plan that it broadcasts; so it stands
 * after all rules of Spark's that change the sides of joins.
 */
class JoinPruning(val session: Compat.Session) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    // Spark optimizes these by themselves, and later merges those that are alike.
    case _: Subquery => plan
    case _ if plan.isStreaming || !JoinPruning.isOn(session) => plan
    case _ => JoinPruning.orUnchanged(plan)(withSubqueries(plan, fetches = true))
  }

  /**
   * Subqueries first: they may be part of what a join broadcasts, which no change may follow. None of them
   * fetches keys: each runs in a thread of Spark's pool, and so would the query for the keys that it waits for.
   */
  private def withSubqueries(plan: LogicalPlan, fetches: Boolean): LogicalPlan =
    if (plan.exists(_.isInstanceOf[RunTimeFilteredScan])) plan
    else new JoinKeys(session, plan.containsPattern(SCALAR_SUBQUERY) match {
      // Spark has keys of broadcasts already, maybe of some with subqueries.
      case true if !plan.containsPattern(DYNAMIC_PRUNING_SUBQUERY) => inSubqueries(plan)
      case _ => plan
    }, fetches).filtered

  private def inSubqueries(plan: LogicalPlan): LogicalPlan =
    if (Loops.isLoop(plan)) plan
    else plan.mapChildren(inSubqueries).transformExpressions {
      case scalar: ScalarSubquery if !scalar.isCorrelated =>
        scalar.withNewPlan(withSubqueries(scalar.plan, fetches = false))
    }
}

object JoinPruning extends OnceLogging {
  /**
   * Puts the rule into a session. There is no hook for rules that run last but `experimental`, which is not
   * there yet while a session is made, and which its user may set, too.
   */
  def install(session: Compat.Session): Unit = session.sessionState.experimentalMethods match {
    case methods if methods.extraOptimizations.exists(isOf(session)) =>
    case methods => methods.synchronized {
      // A cloned session has the rules of the one that it was cloned from.
      val others = methods.extraOptimizations.filterNot(_.isInstanceOf[JoinPruning])
      methods.extraOptimizations = others :+ new JoinPruning(session)
    }
  }

  private def isOf(session: Compat.Session)(rule: Rule[LogicalPlan]): Boolean = rule match {
    case own: JoinPruning => own.session eq session
    case _ => false
  }

  /**
   * Without dynamic pruning Spark leaves such filters unplanned, without reuse it never evaluates
   * them; beside columnar plug-ins scans stay Spark's own, which would wait for values in vain.
   */
  def isOn(session: Compat.Session): Boolean = {
    val conf = session.sessionState.conf
    Settings.enabled(session) && Settings.joinPruning(session) &&
      conf.dynamicPartitionPruningEnabled && conf.exchangeReuseEnabled &&
      FileRanges.areRead(session)
  }

  /** A plan that cannot be looked at is left as it is: its files are read. */
  def orUnchanged(plan: LogicalPlan)(change: => LogicalPlan): LogicalPlan =
    try change
    catch {
      case e @ (NonFatal(_) | _: LinkageError) =>
        warnOnce(s"joins prune no files: $e")
        plan
    }
}

/**
 * Puts the rule into the session whose query is analysed: no earlier hook finds it whole. A plan that was optimized
 * before loses its keys: they are of another query, and the rule is going to find those of this one.
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
