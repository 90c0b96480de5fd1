package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.{ReusedSubqueryExec, SparkPlan, SubqueryBroadcastExec}
import org.apache.spark.sql.execution.joins.HashJoin
import org.apache.spark.sql.sieve.predicate.Tuple
import org.apache.spark.sql.types.DataType

/**
 * Combines several keys of a join, so that one run-time filter can use an index on a tuple of columns. The values come
 * from the side of the join that Spark broadcasts. Spark's filter accepts only a single key of the broadcast, so this
 * expression has the type of the first key.
 *
 * @param keys   the columns of the tuple, in the tuple's order
 * @param places the positions of these columns among the keys of the join
 */
case class BroadcastTuple(keys: Seq[Expression], places: Seq[Int]) extends Expression with Unevaluable {
  override def children: Seq[Expression] = keys
  override def nullable: Boolean = true
  override def dataType: DataType = keys.head.dataType
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): BroadcastTuple = copy(keys = newChildren)
}

object BroadcastTuple {
  /** Replaces each `BroadcastTuple` in an expression by the expression that computes the tuple's index key. */
  def without(e: Expression): Expression = e.transform {
    case tuple: BroadcastTuple => Tuple.key(CreateStruct.create(tuple.keys))
  }

  /** The tuple's index key for each row of a broadcast. A row with NULL in a column of the tuple has no key. */
  def values(tuple: BroadcastTuple, plan: SparkPlan): Array[Any] = plan match {
    case reused: ReusedSubqueryExec => values(tuple, reused.child)
    case keys: SubqueryBroadcastExec =>
      // The relation's class is private to Spark's own package, so this code compares the class's name. A
      // `LongHashedRelation` packs several short integers into one BIGINT.
      val relation = keys.child.executeBroadcast[AnyRef]().value
      val isPacked = relation.getClass.getSimpleName == "LongHashedRelation"
      val columns = tuple.places.map { at =>
        val key = keys.buildKeys(at)
        if (isPacked) HashJoin.extractKeyExprAt(keys.buildKeys, at) else BoundReference(at, key.dataType, key.nullable)
      }
      val key = Tuple.key(CreateStruct.create(columns))
      relation.getClass.getMethod("keys").invoke(relation).asInstanceOf[Iterator[InternalRow]].map(key.eval(_)).filter(_ != null).toArray
  }
}
