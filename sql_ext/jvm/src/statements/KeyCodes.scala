package org.apache.spark.sql.sieve.statements

import org.apache.spark.sql.types.Decimal
import org.apache.spark.unsafe.types.{ByteArray, UTF8String}

/**
 * Computes the codes of keys in the same way as the encoders in `sieve/encoding`, but without a prefix. Tests compare
 * the results with the codes of the encoders. `SieveKey` calls the methods by name.
 */
object KeyCodes {
  def of(value: Boolean): Long = if (value) 1L else 0L
  def of(value: Byte): Long = value
  def of(value: Short): Long = value
  def of(value: Int): Long = value
  def of(value: Long): Long = value

  /**
   * The code of a float is the magnitude of its IEEE bits with the float's sign, so both zeros have the code 0. NaN has
   * no code, so the result is null.
   */
  def of(value: Float): java.lang.Long = {
    val bits = java.lang.Float.floatToRawIntBits(value).toLong
    if (value.isNaN) null else if (bits < 0) Int.MinValue - bits else bits
  }

  def of(value: Double): java.lang.Long = {
    val bits = java.lang.Double.doubleToRawLongBits(value)
    if (value.isNaN) null else if (bits < 0) Long.MinValue - bits else bits
  }

  /** The code of a short decimal is its unscaled value. */
  def ofShortDecimal(value: Decimal, scale: Int): Long =
    if (value.scale == scale) value.toUnscaledLong
    else value.toJavaBigDecimal.setScale(scale).unscaledValue.longValueExact

  /**
   * The code of a long decimal contains the most significant bits of the unscaled value. The higher bits contain the
   * number of omitted bits.
   */
  def ofLongDecimal(value: Decimal, scale: Int): Long = {
    val unscaled = value.toJavaBigDecimal.setScale(scale).unscaledValue
    val magnitude = unscaled.abs
    val spare = math.max(0, magnitude.bitLength - significantBits)
    val code = (spare.toLong << (significantBits - 1)) + magnitude.shiftRight(spare).longValue
    if (unscaled.signum < 0) -code else code
  }
  private val significantBits = 57

  // The code of a text or binary value contains the value's first 8 bytes. The highest bit is inverted, because bytes
  // are compared as unsigned numbers, but indexes compare codes as signed numbers.
  def of(value: UTF8String): Long = value.getPrefix ^ Long.MinValue
  def of(value: Array[Byte]): Long = ByteArray.getPrefix(value) ^ Long.MinValue
}
