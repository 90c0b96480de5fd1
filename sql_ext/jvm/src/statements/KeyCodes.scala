package org.apache.spark.sql.sieve.statements

import org.apache.spark.sql.types.Decimal
import org.apache.spark.unsafe.types.{ByteArray, UTF8String}

/**
 * The key codes that the encoders of `sieve/encoding` make without a prefix. Tests check that both are equal.
 * `SieveKey` calls the methods by name.
 */
object KeyCodes {
  def of(value: Boolean): Long = if (value) 1L else 0L
  def of(value: Byte): Long = value
  def of(value: Short): Long = value
  def of(value: Int): Long = value
  def of(value: Long): Long = value

  /** Sign and magnitude of the IEEE bits, so that both zeros are 0; null for NaN. */
  def of(value: Float): java.lang.Long = {
    val bits = java.lang.Float.floatToRawIntBits(value).toLong
    if (value.isNaN) null else if (bits < 0) Int.MinValue - bits else bits
  }

  def of(value: Double): java.lang.Long = {
    val bits = java.lang.Double.doubleToRawLongBits(value)
    if (value.isNaN) null else if (bits < 0) Long.MinValue - bits else bits
  }

  /** The unscaled value itself. */
  def ofShortDecimal(value: Decimal, scale: Int): Long =
    if (value.scale == scale) value.toUnscaledLong
    else value.toJavaBigDecimal.setScale(scale).unscaledValue.longValueExact

  /** The significant bits of the unscaled value, with the number of omitted bits above them. */
  def ofLongDecimal(value: Decimal, scale: Int): Long = {
    val unscaled = value.toJavaBigDecimal.setScale(scale).unscaledValue
    val magnitude = unscaled.abs
    val spare = math.max(0, magnitude.bitLength - significantBits)
    val code = (spare.toLong << (significantBits - 1)) + magnitude.shiftRight(spare).longValue
    if (unscaled.signum < 0) -code else code
  }
  private val significantBits = 57

  // Bytes compare as unsigned numbers, but codes are signed.
  def of(value: UTF8String): Long = value.getPrefix ^ Long.MinValue
  def of(value: Array[Byte]): Long = ByteArray.getPrefix(value) ^ Long.MinValue
}
