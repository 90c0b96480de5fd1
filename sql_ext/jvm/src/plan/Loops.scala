package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}
import org.apache.spark.sql.execution.{LogicalRDD, SparkPlan}

/**
 * The loops of recursive queries (WITH RECURSIVE). Spark analyses, optimizes and plans each round of a loop as a
 * separate query. In this query, the rows of the previous round replace the reference to the loop. `InstallJoinPruning`
 * removes the keys that the previous round has added to the plan. This object finds the classes of loops by name,
 * because Spark 3.5 lacks these classes.
 */
object Loops {
  /** True if a leaf represents the rows of the previous round. Spark cannot plan such a leaf by itself. */
  def isReference(plan: LogicalPlan): Boolean = plan.nodeName == "UnionLoopRef"

  /** Plans the parts of a loop for a round with few rows, and returns these plans. Nil if the plan is no loop. */
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
