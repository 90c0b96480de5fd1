package org.apache.spark.sql.sieve.predicate

import java.nio.{ByteBuffer, ByteOrder}
import java.util.Base64
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, Predicate, UnaryExpression, XxHash64Function}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.types._

/**
 * Many distinct keys, stored as longs in ascending order. A key is an integer, a date or a timestamp, or the hash of a
 * string or binary value. Two objects of this class are equal only if they are the same object, so that comparisons of
 * expressions are fast.
 */
final class PackedKeys(sorted: Array[Long]) extends Serializable {
  def size: Int = sorted.length

  /** Returns only the keys that are values of an integral type. For any other type, returns all keys. */
  def within(of: DataType): PackedKeys = of match {
    case integers: IntegralType =>
      val own = NumberedValues.of(integers).get
      val (low, high) = (own.low.toLong, own.high.toLong)
      new PackedKeys(sorted.filter(key => low <= key && key <= high))
    case _ => this
  }

  def contains(key: Long): Boolean = java.util.Arrays.binarySearch(sorted, key) >= 0

  /** The keys as base64 of little-endian bytes, in the form of the predicate tree. */
  def base64: String = Base64.getEncoder.encodeToString(PackedKeys.bytes(sorted))
}

object PackedKeys {
  // The seed of Spark's function `xxhash64`, with which a build hashes values.
  private val seed = 42L

  /** True if a value of this type can be a packed key. */
  def support(of: DataType): Boolean = isNumber(of) || isHashed(of)

  /** True if the packed key of a value is the value's hash. */
  def isHashed(of: DataType): Boolean = of == StringType || of == BinaryType

  /** True if the packed key of a value is the value itself, as a long. */
  def isNumber(of: DataType): Boolean = of match {
    case _: IntegralType | DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }

  /** The packed key of a non-NULL value, whose type `support` accepts. */
  def of(value: Any, t: DataType): Long =
    if (isHashed(t)) XxHash64Function.hash(value, t, seed) else value.asInstanceOf[Number].longValue

  /** Packs non-NULL values, whose type `support` accepts. */
  def pack(values: Array[Any], t: DataType): PackedKeys = {
    val keys = values.map(of(_, t))
    java.util.Arrays.sort(keys)
    new PackedKeys(keys.indices.iterator.filter(i => i == 0 || keys(i - 1) != keys(i)).map(keys(_)).toArray)
  }

  def bytes(keys: Array[Long]): Array[Byte] = {
    val buffer = ByteBuffer.allocate(keys.length * java.lang.Long.BYTES).order(ByteOrder.LITTLE_ENDIAN)
    buffer.asLongBuffer.put(keys)
    buffer.array
  }

  def longs(bytes: Array[Byte]): Array[Long] = {
    val keys = new Array[Long](bytes.length / java.lang.Long.BYTES)
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer.get(keys)
    keys
  }
}

/** The filter `child IN keys`. If the keys are hashes, other values can satisfy the filter, too. */
case class AmongPackedKeys(child: Expression, keys: PackedKeys)
    extends UnaryExpression with Predicate with CodegenFallback {
  override protected def nullSafeEval(value: Any): Any = keys.contains(PackedKeys.of(value, child.dataType))
  override protected def withNewChildInternal(child: Expression): AmongPackedKeys = copy(child = child)
  override def sql: String = s"(${child.sql} IN (${keys.size} keys))"
  override def toString: String = s"$child IN (${keys.size} keys)"
}
