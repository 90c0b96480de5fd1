package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical.{Generate, Join, LogicalPlan}
import org.apache.spark.sql.types.AtomicType

/**
 * Recognises plans whose cost is roughly proportional to the bytes that they read. A simple plan only compares,
 * computes and counts. A regular expression, a JSON function, a higher-order function or a user-defined function can
 * need any amount of time per row. EXPLODE, or a join without equality conditions, can return any number of rows. A
 * plan is simple only if the lists below contain all its nodes and functions.
 */
object SimplePlans {
  def isSimple(plan: LogicalPlan): Boolean =
    !plan.exists(node => isCrossed(node) || !node.expressions.forall(isSimple))

  private def isCrossed(node: LogicalPlan): Boolean = node match {
    case join: Join => ExtractEquiJoinKeys.unapply(join).isEmpty
    // A generator, such as EXPLODE, can return any number of rows for one row.
    case _: Generate => true
    case _ => false
  }

  private def isSimple(e: Expression): Boolean = e match {
    // For each row, a filter of dynamic partition pruning only looks up a value in a broadcast.
    case _: DynamicPruning => true
    case _ => isKnown(e) && e.children.forall(isSimple)
  }

  private def isKnown(e: Expression): Boolean = e match {
    case _: Attribute | _: Literal | _: Alias | _: TaggingExpression | _: NormalizeNaNAndZero => true
    case _: GetStructField | _: CreateNamedStruct | _: CreateArray => true
    case _: BinaryComparison | _: And | _: Or | _: Not | _: In | _: InSet | _: StringPredicate => true
    case _: IsNull | _: IsNotNull | _: IsNaN | _: AtLeastNNonNulls | _: Coalesce | _: ConditionalExpression => true
    case _: BinaryArithmetic | _: UnaryMinus | _: Abs | _: CheckOverflow | _: MakeDecimal | _: UnscaledValue => true
    case _: GetDateField | _: TruncDate | _: TruncTimestamp | _: DateAdd | _: DateSub | _: DateDiff => true
    case _: Substring | _: Length | _: Upper | _: Lower | _: HashExpression[_] => true
    case cast: Cast => isAtomic(cast.child) && isAtomic(cast)
    case _: AggregateExpression | _: Count | _: Sum | _: Average | _: Min | _: Max | _: DistinctKeys => true
    case _ => false
  }

  private def isAtomic(e: Expression): Boolean = e.dataType.isInstanceOf[AtomicType]
}
