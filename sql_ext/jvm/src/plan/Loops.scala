package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}
import org.apache.spark.sql.execution.{LogicalRDD, SparkPlan}

/**
 * The loops of recursive queries (WITH RECURSIVE). Spark runs each round of a loop as a separate query. In this
 * query, the rows of the previous round replace the reference to the loop. Spark analyses, optimizes and plans each
 * round. `InstallJoinPruning` removes the keys that the plan got in the previous round. This object finds the
 * classes of loops by name, because Spark 3.5 does not have such classes.
 */
object Loops {
  /** True if a leaf represents the rows of the previous round. Such a leaf cannot be planned by itself. */
  def isReference(plan: LogicalPlan): Boolean = plan.nodeName == "UnionLoopRef"

  /** Returns plans of a loop's parts, for a round with few rows. Nil if the plan is no loop. */
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
