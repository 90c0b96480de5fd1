package org.apache.spark.sql.sieve.predicate

import org.apache.spark.sql.types._

/**
 * All values of a type in ascending order. The ordinals go from `low` to `high`, both inclusive.
 *
 * @param value returns the value that has a given ordinal
 */
final case class NumberedValues(low: BigInt, high: BigInt, value: BigInt => Any)

object NumberedValues {
  /** The values of a type with their ordinals. Returns None for a type whose values have no ordinals. */
  def of(t: DataType): Option[NumberedValues] = t match {
    case ByteType => Some(NumberedValues(Byte.MinValue.toInt, Byte.MaxValue.toInt, _.toByte))
    case ShortType => Some(NumberedValues(Short.MinValue.toInt, Short.MaxValue.toInt, _.toShort))
    case IntegerType | DateType => Some(NumberedValues(Int.MinValue, Int.MaxValue, _.toInt))
    case LongType | TimestampType | TimestampNTZType => Some(NumberedValues(Long.MinValue, Long.MaxValue, _.toLong))
    case d: DecimalType =>
      val most = BigInt(10).pow(d.precision) - 1
      Some(NumberedValues(-most, most, x => Decimal(new java.math.BigDecimal(x.bigInteger, d.scale), d.precision, d.scale)))
    // The ordinals of finite floats and infinities ascend with the values. NaN has no ordinal. Comparisons in an index
    // treat NaN as greater than every other value.
    case FloatType =>
      def float(i: Int): Float = java.lang.Float.intBitsToFloat(if (i >= 0) i else i ^ Int.MaxValue)
      val top = java.lang.Float.floatToRawIntBits(Float.PositiveInfinity)
      Some(NumberedValues(-top - 1, top, x => float(x.toInt)))
    case DoubleType =>
      def double(i: Long): Double = java.lang.Double.longBitsToDouble(if (i >= 0) i else i ^ Long.MaxValue)
      val top = java.lang.Double.doubleToRawLongBits(Double.PositiveInfinity)
      Some(NumberedValues(-top - 1, top, x => double(x.toLong)))
    case _ => None
  }
}
