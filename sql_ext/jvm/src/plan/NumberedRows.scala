package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.expressions.{And, PredicateHelper}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.sieve.formats.TableFormat

/**
 * Conditions of a MERGE on only its target. MERGE numbers the rows of its target, and Spark pushes no filter
 * through a projection with numbers, so no scan would see these conditions.
 */
object NumberedRows extends PredicateHelper {
  /**
   * The plan with such conditions below the numbers; None if it has none. The numbers only distinguish rows, so
   * fewer rows may be numbered.
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
