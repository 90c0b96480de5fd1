package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.expressions.{And, PredicateHelper}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.sieve.formats.TableFormat

/**
 * If a condition of a MERGE uses only the target's columns, moves the condition closer to the target's scan. MERGE adds
 * numbers to the rows of its target, and Spark itself pushes no filter below a projection that adds numbers.
 */
object NumberedRows extends PredicateHelper {
  /**
   * Moves conditions of a filter below the projection that adds row numbers, if the conditions use only the target's
   * columns. Returns None if every condition uses other columns. Rows that the filter removes get no number. This is
   * correct, because the numbers only distinguish rows.
   *
   * {{{
   * Filter (k >= 70)                     Project [k, number, file]
   *   Project [k, number, file]    =>      Filter (k >= 70)
   *     Relation t                           Relation t
   * }}}
   */
  def filteredFirst(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case Filter(condition, numbers: Project)
        if TableFormat.numbersRows(numbers) && !numbers.projectList.forall(_.deterministic) =>
      val (own, others) = splitConjunctivePredicates(condition).partition { part =>
        part.deterministic && part.references.subsetOf(numbers.child.outputSet)
      }
      own.reduceOption(And(_, _)).map { first =>
        val filtered = numbers.copy(child = Filter(first, numbers.child))
        others.reduceOption(And(_, _)).fold[LogicalPlan](filtered)(Filter(_, filtered))
      }
    case _ => None
  }
}
