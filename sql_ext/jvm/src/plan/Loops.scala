package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}
import org.apache.spark.sql.execution.{LogicalRDD, SparkPlan}

/**
 * The loops of recursive queries (WITH RECURSIVE). Spark runs each round of a loop as a query of its own, which it
 * analyses, optimizes and plans again with the rows of the round before in the place of a reference. So a
 * rule leaves a loop as it is: what it would put there is of no round, and each round is seen by all
 * rules. The classes are known by name, as Spark 3.5 has none of them.
 */
object Loops {
  def isLoop(plan: LogicalPlan): Boolean = plan.nodeName == "UnionLoop"

  /** Whether a leaf stands for the rows of the round before, and cannot be planned by itself. */
  def isReference(plan: LogicalPlan): Boolean = plan.nodeName == "UnionLoopRef"

  /** What a loop runs, as it would be planned for a round with few rows; nothing for any other plan. */
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
