package org.apache.spark.sql.sieve

import java.time.Instant

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._

/**
 * A function of one argument, all else in it constant, with the part of the argument's type on which
 * it never decreases. Outside of `low` to `high` (ordinals, both included) it may wrap or fail.
 *
 * @param slack how far around an argument smaller arguments may have greater results
 */
final case class Rising(
    argument: Expression, low: BigInt, high: BigInt, slack: BigInt => BigInt = _ => 0)

object Rising {
  private val microsPerDay = BigInt(86400000000L)
  // More than a year and a day: what truncation may take off, in any zone.
  private val marginDays = BigInt(400)

  /** None for an expression that may fall, or whose argument has no ordinals. */
  def of(e: Expression): Option[Rising] = e match {
    case c: Cast if rises(c.child.dataType, c.dataType) => (c.child.dataType, c.dataType) match {
      // An int has days that a long of microseconds has not.
      case (DateType, _) =>
        val most = Long.MaxValue / microsPerDay - marginDays
        Some(Rising(c.child, -most, most))
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
    case (_: DecimalType, DoubleType) => true
    case (FloatType, DoubleType) => true
    case (DateType, TimestampType | TimestampNTZType) => true
    case (TimestampType | TimestampNTZType, DateType) => true
    case (TimestampType, TimestampNTZType) => true
    case _ => false
  }

  /** Everywhere but near the ends of the argument's type. */
  private def within(
      argument: Expression, margin: BigInt, slack: BigInt => BigInt = _ => 0): Option[Rising] =
    Ordinals.of(argument.dataType).map(o => Rising(argument, o.low + margin, o.high - margin, slack))

  /** Dates that `days` more do not carry past the end of an int, where Spark lets them wrap. */
  private def moved(date: Expression, days: BigInt): Option[Rising] =
    Ordinals.of(date.dataType).map(o => Rising(date, o.low.max(o.low - days), o.high.min(o.high - days)))

  /**
   * Where clocks are set back, local time runs twice through the same stretch, so that a function of
   * local time falls once: within two days of it, by the stretch's length in microseconds.
   */
  private def overlap(e: TimeZoneAwareExpression, micros: BigInt): BigInt = {
    val seconds = (micros / 1000000L).toLong
    val from = Instant.ofEpochSecond(seconds - 2 * 86400L)
    val to = Instant.ofEpochSecond(seconds + 2 * 86400L)
    val rules = DateTimeUtils.getZoneId(e.timeZoneId.get).getRules
    val back = Iterator.iterate(rules.nextTransition(from))(n => rules.nextTransition(n.getInstant))
      .takeWhile(n => n != null && n.getInstant.isBefore(to))
      .map(n => math.abs(n.getDuration.getSeconds)).sum
    BigInt(back) * 1000000L
  }
}
