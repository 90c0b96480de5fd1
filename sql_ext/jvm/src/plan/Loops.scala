package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}
import org.apache.spark.sql.execution.{LogicalRDD, SparkPlan}

/**
 * The loops of recursive queries (WITH RECURSIVE). Spark analyses, optimizes and plans each iteration of a loop as a
 * separate query. In this query, the rows of the previous iteration replace the reference to the loop.
 * `InstallJoinPruning` removes the join keys that were added to the plan for the previous iteration. This object
 * recognises loops by the names of their classes, because Spark 3.5 lacks these classes.
 */
object Loops {
  /** True for a leaf that represents the rows of the previous iteration, and that Spark cannot plan by itself. */
  def isReference(plan: LogicalPlan): Boolean = plan.nodeName == "UnionLoopRef"

  /**
   * Plans the parts of a loop in the way in which Spark plans an iteration with few rows. Returns Nil if `plan` is no
   * loop.
   */
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
