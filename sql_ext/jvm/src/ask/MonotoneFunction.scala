package org.apache.spark.sql.sieve.ask

import java.time.{Duration, Instant}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeConstants.{MICROS_PER_DAY, MICROS_PER_SECOND}
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._

/**
 * A function of one argument, with constants as its other operands. The function never decreases for arguments with
 * ordinals from `low` to `high`, both included. For other arguments, the function can overflow or fail.
 *
 * @param slack the maximum distance between two arguments for which the smaller argument can have the greater result
 */
final case class MonotoneFunction(
    argument: Expression, low: BigInt, high: BigInt, slack: BigInt => BigInt = _ => 0)

object MonotoneFunction {
  private val microsPerDay = BigInt(MICROS_PER_DAY)
  // Truncation of a date subtracts at most a year and a day, in any time zone.
  private val marginDays = BigInt(400)

  /**
   * The expression as a monotone function. None if the function can decrease, or if the values of its argument's type
   * are not numbered.
   */
  def of(e: Expression): Option[MonotoneFunction] = e match {
    case c: Cast if rises(c.child.dataType, c.dataType) => (c.child.dataType, c.dataType) match {
      // A date is a number of days (INT). Some dates are outside the range of timestamps, which are microseconds
      // (LONG).
      case (DateType, _) =>
        val most = Long.MaxValue / microsPerDay - marginDays
        Some(MonotoneFunction(c.child, -most, most))
      case (TimestampType, TimestampNTZType) => within(c.child, microsPerDay * 2, overlap(c, _))
      case (TimestampType, _) => within(c.child, 0, overlap(c, _))
      case _ => within(c.child, 0)
    }
    case Year(child) => within(child, 0)
    case TruncDate(date, format: Literal) if format.value != null => within(date, marginDays)
    case t @ TruncTimestamp(format: Literal, time, _) if format.value != null =>
      within(time, microsPerDay * marginDays, overlap(t, _))
    case DateAdd(child, Literal(n: Int, _)) => moved(child, n)
    case DateSub(child, Literal(n: Int, _)) => moved(child, -BigInt(n))
    case _ => None
  }

  private def rises(from: DataType, to: DataType): Boolean = (from, to) match {
    case (_: IntegralType, t: IntegralType) => t.defaultSize >= from.defaultSize
    case (_: IntegralType, FloatType | DoubleType) => true
    case (f: IntegralType, t: DecimalType) => t.precision - t.scale >= DecimalType.forType(f).precision
    case (f: DecimalType, t: DecimalType) =>
      t.scale >= f.scale && t.precision - t.scale >= f.precision - f.scale
    case (_: DecimalType | FloatType, DoubleType) => true
    case (DateType, TimestampType | TimestampNTZType) => true
    case (TimestampType | TimestampNTZType, DateType) => true
    case (TimestampType, TimestampNTZType) => true
    case _ => false
  }

  /** A function that is monotone except near the least and the greatest value of the argument's type. */
  private def within(
      argument: Expression, margin: BigInt, slack: BigInt => BigInt = _ => 0): Option[MonotoneFunction] =
    NumberedValues.of(argument.dataType)
      .map(o => MonotoneFunction(argument, o.low + margin, o.high - margin, slack))

  /**
   * The function that adds `days` to a date. The function is monotone only for dates whose result fits into an INT,
   * because greater results overflow.
   */
  private def moved(date: Expression, days: BigInt): Option[MonotoneFunction] = NumberedValues.of(date.dataType)
    .map(o => MonotoneFunction(date, o.low.max(o.low - days), o.high.min(o.high - days)))

  /**
   * The number of microseconds by which a function of local time can decrease within two days of `micros`. When
   * clocks are set back, local time repeats an interval, and the function decreases once by the length of the
   * interval.
   */
  private def overlap(e: TimeZoneAwareExpression, micros: BigInt): BigInt = {
    val at = Instant.ofEpochSecond((micros / MICROS_PER_SECOND).toLong)
    val (from, to) = (at.minus(Duration.ofDays(2)), at.plus(Duration.ofDays(2)))
    val rules = DateTimeUtils.getZoneId(e.timeZoneId.get).getRules
    val back = Iterator.iterate(rules.nextTransition(from))(n => rules.nextTransition(n.getInstant))
      .takeWhile(n => n != null && n.getInstant.isBefore(to))
      .map(n => math.abs(n.getDuration.getSeconds)).sum
    BigInt(back) * MICROS_PER_SECOND
  }
}
