package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}
import org.apache.spark.sql.execution.{LogicalRDD, SparkPlan}

/**
 * The loops of recursive queries (WITH RECURSIVE). Spark runs each round of a loop as a query of its own. It
 * analyses, optimizes and plans the round with the rows of the previous round in place of a reference.
 * `InstallJoinPruning` drops the keys that the plan got in the previous round. The code finds the classes by
 * name, because Spark 3.5 does not have them.
 */
object Loops {
  /** Whether a leaf represents the rows of the previous round, and cannot be planned by itself. */
  def isReference(plan: LogicalPlan): Boolean = plan.nodeName == "UnionLoopRef"

  /** The plans of a loop's parts for a round with few rows; Nil for any other plan. */
  def rounds(plan: SparkPlan): Seq[SparkPlan] =
    if (plan.nodeName != "UnionLoop") Nil
    else plan.innerChildren.collect { case part: LogicalPlan =>
      val session = plan.session
      session.sessionState.executePlan(part.transformWithSubqueries {
        case own if isReference(own) =>
          LogicalRDD(own.output, session.sparkContext.emptyRDD)(session, Some(Statistics(sizeInBytes = 1)))
      }).executedPlan
    }
}
