package org.apache.spark.sql.sieve.plan

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{ImperativeAggregate, TypedImperativeAggregate}
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.{BinaryLike, UnaryLike}
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData, TypeUtils}
import org.apache.spark.sql.types._

/**
 * The filter `key IN keys` of a scan. A subquery collects the keys while the query runs. Only the listing of an indexed
 * table uses this filter. Spark does not evaluate the filter on rows.
 *
 * @param keys ranges of keys, in the form that `DistinctKeys` returns
 */
case class AmongKeys(key: Expression, keys: Expression)
    extends Expression with BinaryLike[Expression] with Unevaluable {
  override def left: Expression = key
  override def right: Expression = keys
  override def dataType: DataType = BooleanType
  override def nullable: Boolean = true
  override protected def withNewChildrenInternal(left: Expression, right: Expression): AmongKeys =
    AmongKeys(left, right)
}

/**
 * An aggregate function that returns the non-NULL values of a column as a sorted array of ranges. A range has a first
 * and a last value. If there are few values, each value is a range of its own. If the number of values exceeds a limit,
 * each task merges values into ranges, and the widest gaps remain between the ranges. So tasks and the driver store
 * only a limited number of ranges.
 */
case class DistinctKeys(
    child: Expression, mutableAggBufferOffset: Int = 0, inputAggBufferOffset: Int = 0)
    extends TypedImperativeAggregate[KeyBuffer] with UnaryLike[Expression] {
  override def nullable: Boolean = false
  override def dataType: DataType = ArrayType(child.dataType, containsNull = false)
  override def prettyName: String = "sieve_distinct_keys"

  private lazy val toBytes = UnsafeProjection.create(Array(dataType))

  override def createAggregationBuffer(): KeyBuffer = new KeyBuffer(child.dataType)
  override def update(buffer: KeyBuffer, row: InternalRow): KeyBuffer = {
    val value = child.eval(row)
    if (value != null) buffer.add(value)
    buffer
  }
  override def merge(buffer: KeyBuffer, other: KeyBuffer): KeyBuffer = {
    buffer.add(other.ranges)
    buffer
  }
  override def eval(buffer: KeyBuffer): Any = DistinctKeys.array(buffer.ranges)
  override def serialize(buffer: KeyBuffer): Array[Byte] = toBytes(InternalRow(eval(buffer))).getBytes
  override def deserialize(bytes: Array[Byte]): KeyBuffer = {
    val row = new UnsafeRow(1)
    row.pointTo(bytes, bytes.length)
    val buffer = new KeyBuffer(child.dataType)
    buffer.add(DistinctKeys.ranges(row.getArray(0), child.dataType))
    buffer
  }

  override def withNewMutableAggBufferOffset(offset: Int): ImperativeAggregate =
    copy(mutableAggBufferOffset = offset)
  override def withNewInputAggBufferOffset(offset: Int): ImperativeAggregate =
    copy(inputAggBufferOffset = offset)
  override protected def withNewChildInternal(newChild: Expression): DistinctKeys = copy(child = newChild)
}

object DistinctKeys {
  /**
   * Creates a subquery that returns one struct. For each of `keys`, a field of the struct contains the key's values in
   * the rows of `build`, as ranges.
   */
  def of(build: LogicalPlan, keys: Seq[Expression]): ScalarSubquery = {
    val fields = keys.zipWithIndex.flatMap { case (key, at) =>
      Seq(Literal(s"k$at"), DistinctKeys(key).toAggregateExpression())
    }
    ScalarSubquery(ColumnPruning(Aggregate(Nil, Seq(Alias(CreateNamedStruct(fields), "keys")()), build)))
  }

  private def array(ranges: Seq[(Any, Any)]): ArrayData =
    new GenericArrayData(ranges.flatMap { case (first, last) => Seq(first, last) }.toArray[Any])

  /** Decodes the ranges in an array that `array` has created. */
  def ranges(array: ArrayData, of: DataType): IndexedSeq[(Any, Any)] = {
    val values = array.toObjectArray(of).map(v => InternalRow.copyValue(v).asInstanceOf[Any])
    (0 until values.length by 2).map(at => (values(at), values(at + 1)))
  }
}

/** Collects values as ranges, and merges ranges if there are too many. */
final class KeyBuffer(of: DataType) {
  private val order = TypeUtils.getInterpretedOrdering(of)
  private val fresh = new java.util.HashSet[Any]
  private var bytes = 0L
  private var sorted = IndexedSeq.empty[(Any, Any)]

  /** Adds a copy of a value. The buffer cannot keep the value itself, because Spark reuses the value's memory. */
  def add(value: Any): Unit = if (!fresh.contains(value)) {
    val own = InternalRow.copyValue(value)
    fresh.add(own)
    bytes += RunTimeFilters.bytes(own)
    if (fresh.size > RunTimeFilters.mostKeys || bytes > RunTimeFilters.mostBytes) settle(Nil)
  }

  def add(others: Seq[(Any, Any)]): Unit = settle(others)

  /** Ranges that contain all added values, in ascending order and without overlaps. */
  def ranges: IndexedSeq[(Any, Any)] = {
    if (!fresh.isEmpty) settle(Nil)
    sorted
  }

  private def settle(others: Seq[(Any, Any)]): Unit = {
    val all = (fresh.asScala.iterator.map(v => (v, v)) ++ others ++ sorted).toIndexedSeq.sortBy(_._1)(order)
    sorted = ValueRanges.bounded(ValueRanges.union(all, order), of)
    fresh.clear()
    bytes = 0L
  }
}
