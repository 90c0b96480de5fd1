package org.apache.spark.sql.sieve

import org.apache.spark.sql.types.Decimal
import org.apache.spark.unsafe.types.{ByteArray, UTF8String}

/**
 * Key codes of values whose code is not the value itself, as `sieve/encoding/codec.py` makes them without a
 * prefix; tests hold the two together. Called from generated code.
 */
object KeyCodes {
  /** Sign and magnitude of the IEEE bits, so that both zeros are 0. */
  def ofFloat(value: Float): Long = {
    val bits = java.lang.Float.floatToRawIntBits(value).toLong
    if (bits < 0) Int.MinValue - bits else bits
  }

  def ofDouble(value: Double): Long = {
    val bits = java.lang.Double.doubleToRawLongBits(value)
    if (bits < 0) Long.MinValue - bits else bits
  }

  /** The unscaled value itself. */
  def ofShortDecimal(value: Decimal, scale: Int): Long =
    if (value.scale == scale) value.toUnscaledLong
    else value.toJavaBigDecimal.setScale(scale).unscaledValue.longValueExact

  /** 57 significant bits of the unscaled value, below the number of bits that were left out. */
  def ofLongDecimal(value: Decimal, scale: Int): Long = {
    val unscaled = value.toJavaBigDecimal.setScale(scale).unscaledValue
    val magnitude = unscaled.abs
    val spare = math.max(0, magnitude.bitLength - 57)
    val code = (spare.toLong << 56) + magnitude.shiftRight(spare).longValue
    if (unscaled.signum < 0) -code else code
  }

  // Both prefixes compare unsigned; codes are signed.
  def ofString(value: UTF8String): Long = value.getPrefix ^ Long.MinValue
  def ofBinary(value: Array[Byte]): Long = ByteArray.getPrefix(value) ^ Long.MinValue
}
