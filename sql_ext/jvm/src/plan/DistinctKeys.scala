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
import org.apache.spark.sql.sieve.predicate.PackedKeys
import org.apache.spark.sql.types._
import org.apache.spark.util.collection.OpenHashSet

/**
 * The filter `key IN keys` of a scan. A subquery collects the keys while the query runs. Only the listing of an indexed
 * table uses this filter. Spark does not evaluate the filter on rows.
 *
 * @param keys the keys, in the form that `DistinctKeys` returns
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
 * An aggregate function that returns the non-NULL values of a column as a struct of two fields. The first field is a
 * sorted array of ranges. A range has a first and a last value. If there are few values, each value is a range of its
 * own. If the number of values exceeds a limit, each task merges values into ranges, and leaves the widest gaps between
 * the ranges. The second field has all values as `PackedKeys` (64-bit integers). The second field is NULL if there are
 * too many values, or if the values' type has no packed keys. The limits also bound the memory of tasks and of the
 * driver.
 */
case class DistinctKeys(
    child: Expression, mutableAggBufferOffset: Int = 0, inputAggBufferOffset: Int = 0)
    extends TypedImperativeAggregate[KeyBuffer] with UnaryLike[Expression] {
  override def nullable: Boolean = false
  override def dataType: DataType = new StructType()
    .add("ranges", ArrayType(child.dataType, containsNull = false), nullable = false).add("packed", BinaryType)
  override def prettyName: String = "sieve_distinct_keys"

  private lazy val toBytes = UnsafeProjection.create(Array(dataType))

  override def createAggregationBuffer(): KeyBuffer = new KeyBuffer(child.dataType)
  override def update(buffer: KeyBuffer, row: InternalRow): KeyBuffer = {
    val value = child.eval(row)
    if (value != null) buffer.add(value)
    buffer
  }
  override def merge(buffer: KeyBuffer, other: KeyBuffer): KeyBuffer = {
    buffer.add(other)
    buffer
  }
  override def eval(buffer: KeyBuffer): Any =
    InternalRow(DistinctKeys.array(buffer.ranges), buffer.packed.map(PackedKeys.bytes).orNull)
  override def serialize(buffer: KeyBuffer): Array[Byte] = toBytes(InternalRow(eval(buffer))).getBytes
  override def deserialize(bytes: Array[Byte]): KeyBuffer = {
    val row = new UnsafeRow(1)
    row.pointTo(bytes, bytes.length)
    DistinctKeys.buffer(row.getStruct(0, 2), child.dataType)
  }

  override def withNewMutableAggBufferOffset(offset: Int): ImperativeAggregate =
    copy(mutableAggBufferOffset = offset)
  override def withNewInputAggBufferOffset(offset: Int): ImperativeAggregate =
    copy(inputAggBufferOffset = offset)
  override protected def withNewChildInternal(newChild: Expression): DistinctKeys = copy(child = newChild)
}

object DistinctKeys {
  /**
   * Creates a subquery that returns one struct. The struct has one field for each of `keys`: the key's values in the
   * rows of `build`, in the form that `DistinctKeys` returns.
   */
  def of(build: LogicalPlan, keys: Seq[Expression]): ScalarSubquery = {
    val fields = keys.zipWithIndex.flatMap { case (key, at) =>
      Seq(Literal(s"k$at"), DistinctKeys(key).toAggregateExpression())
    }
    ScalarSubquery(ColumnPruning(Aggregate(Nil, Seq(Alias(CreateNamedStruct(fields), "keys")()), build)))
  }

  private def array(ranges: Seq[(Any, Any)]): ArrayData =
    new GenericArrayData(ranges.flatMap { case (first, last) => Seq(first, last) }.toArray[Any])

  /** Decodes a result of the aggregate function. */
  def buffer(result: InternalRow, of: DataType): KeyBuffer = new KeyBuffer(
    of, ranges(result.getArray(0), of), if (result.isNullAt(1)) None else Some(PackedKeys.longs(result.getBinary(1))))

  private def ranges(array: ArrayData, of: DataType): IndexedSeq[(Any, Any)] = {
    val values = array.toObjectArray(of).map(v => InternalRow.copyValue(v).asInstanceOf[Any])
    (0 until values.length by 2).map(at => (values(at), values(at + 1)))
  }
}

/**
 * Collects values as ranges and as packed keys. Merges ranges if there are too many ranges, and drops the packed keys
 * if there are too many keys. Numbers become ranges only at the end, or when the buffer drops the packed keys. Sorting
 * many longs once takes a tenth of the time of sorting ranges again and again.
 */
final class KeyBuffer(
    of: DataType, before: IndexedSeq[(Any, Any)] = IndexedSeq.empty, keys: Option[Array[Long]] = Some(Array.empty)) {
  private val order = TypeUtils.getInterpretedOrdering(of)
  private val (isPacked, isNumber) = (PackedKeys.support(of), PackedKeys.isNumber(of))
  private val fresh = new java.util.HashSet[Any]
  private var bytes = 0L
  private var sorted = before
  /** Whether `all` contains every added key. If not, the missing keys are in `sorted`. */
  private var isComplete = isPacked && keys.nonEmpty
  private var all = new OpenHashSet[Long](math.max(64, keys.fold(0)(_.length)))
  keys.filter(_ => isPacked).foreach(_.foreach(all.add(_)))

  /** Adds a copy of a value. The buffer cannot keep the value itself, because Spark reuses the value's memory. */
  def add(value: Any): Unit =
    if (isNumber) pack(PackedKeys.of(value, of))
    else if (!fresh.contains(value)) {
      if (isComplete) pack(PackedKeys.of(value, of))
      val own = InternalRow.copyValue(value)
      fresh.add(own)
      bytes += RunTimeFilters.bytes(own)
      if (fresh.size > RunTimeFilters.mostKeys || bytes > RunTimeFilters.mostBytes) settle(Nil)
    }

  def add(other: KeyBuffer): Unit = {
    val others = other.packed
    if (others.isEmpty || !isNumber) settle(other.ranges)
    if (others.isEmpty) drop()
    if (isComplete || isNumber) others.foreach(_.foreach(pack))
  }

  private def pack(key: Long): Unit = {
    all.add(key)
    if (all.size > RunTimeFilters.mostPacked) drop()
  }

  /** Drops the packed keys. Numbers become ranges first. */
  private def drop(): Unit = {
    settleNumbers()
    isComplete = false
    all = new OpenHashSet[Long](64)
  }

  /**
   * All packed keys in ascending order. Returns None if there are too many values, or if the values' type has no packed
   * keys.
   */
  def packed: Option[Array[Long]] = if (isComplete) Some(ascending) else None

  private def ascending: Array[Long] = {
    val keys = all.iterator.toArray
    java.util.Arrays.sort(keys)
    keys
  }

  private def settleNumbers(): Unit = if (isNumber && all.size > 0) settle(ValueRanges.ofNumbers(ascending, of))

  /** Ranges that contain all added values, in ascending order and without overlaps. */
  def ranges: IndexedSeq[(Any, Any)] = {
    settleNumbers()
    if (!fresh.isEmpty) settle(Nil)
    sorted
  }

  private def settle(others: Seq[(Any, Any)]): Unit = {
    val every = (fresh.asScala.iterator.map(v => (v, v)) ++ others ++ sorted).toIndexedSeq.sortBy(_._1)(order)
    sorted = ValueRanges.bounded(ValueRanges.union(every, order), of)
    fresh.clear()
    bytes = 0L
  }
}
