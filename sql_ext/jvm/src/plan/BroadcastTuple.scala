package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.{ReusedSubqueryExec, SparkPlan, SubqueryBroadcastExec}
import org.apache.spark.sql.execution.joins.HashJoin
import org.apache.spark.sql.sieve.ask.Tuple
import org.apache.spark.sql.types.DataType

/**
 * Several keys of a join whose other side Spark broadcasts, as the key of a run-time filter. Spark's filter can have
 * only one key of the broadcast, so this expression has the type of the first one.
 *
 * @param keys   the columns of a tuple, in its order
 * @param places the places of the columns among the keys of the join
 */
case class BroadcastTuple(keys: Seq[Expression], places: Seq[Int]) extends Expression with Unevaluable {
  override def children: Seq[Expression] = keys
  override def nullable: Boolean = true
  override def dataType: DataType = keys.head.dataType
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): BroadcastTuple = copy(keys = newChildren)
}

object BroadcastTuple {
  /** An expression with the key of an index in place of each tuple. */
  def without(e: Expression): Expression = e.transform {
    case tuple: BroadcastTuple => Tuple.key(CreateStruct.create(tuple.keys))
  }

  /** The keys of an index on a tuple for all rows of a broadcast. Rows with NULL have none. */
  def values(tuple: BroadcastTuple, plan: SparkPlan): Array[Any] = plan match {
    case reused: ReusedSubqueryExec => values(tuple, reused.child)
    case keys: SubqueryBroadcastExec =>
      // Only Spark's own package can name the class of the relation. Its subclass with this name has several short
      // integers as one BIGINT.
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
