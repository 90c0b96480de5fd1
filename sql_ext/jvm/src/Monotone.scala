package org.apache.spark.sql.sieve

import java.time.Instant

import scala.util.Try

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.{DateTimeUtils, TypeUtils}
import org.apache.spark.sql.types._

/**
 * Turns `f(column) op literal`, f never decreasing, into bounds on the column: f is Spark's own
 * expression, evaluated by Spark, and the bounds are found by bisection over the column's domain.
 *
 * @param column the type of an expression that is a bare column, None for any other
 */
class Monotone(column: Expression => Option[DataType]) {

  /** The column with its least and greatest value (both included, None: unbounded), if solvable. */
  def solve(f: Expression, op: String, v: Any): Option[(Expression, Option[Any], Option[Any])] =
    for {
      leaf <- argument(f)
      domain <- domain(leaf.dataType)
      bound = f.transformUp { case e if e.semanticEquals(leaf) => BoundReference(0, leaf.dataType, nullable = true) }
      order <- Try(TypeUtils.getInterpretedOrdering(f.dataType)).toOption
      at = (x: BigInt) => order.compare(bound.eval(InternalRow(domain.value(x))), v)
      // The first value with f >= v, and the first with f > v; `high + 1` where there is none.
      first <- Try(bisect(domain.low, domain.high, x => at(x) >= 0)).toOption
      after <- Try(bisect(domain.low, domain.high, x => at(x) > 0)).toOption
      slack = if (zoned(f)) Seq(first, after).map(x => overlap(x, leaf.dataType, f)).max else BigInt(0)
      range <- op match {
        case "=" => Some((Some(first), Some(after - 1)))
        case "<" => Some((None, Some(first - 1)))
        case "<=" => Some((None, Some(after - 1)))
        case ">" => Some((Some(after), None))
        case ">=" => Some((Some(first), None))
        case _ => None
      }
    } yield {
      // A bound at the end of the searched domain says nothing of the values beyond it.
      val low = range._1.map(_ - slack).filter(_ > domain.low).map(_.min(domain.high))
      val high = range._2.map(_ + slack).filter(_ < domain.high).map(_.max(domain.low))
      (leaf, low.map(domain.value), high.map(domain.value))
    }

  private def bisect(from: BigInt, to: BigInt, holds: BigInt => Boolean): BigInt = {
    var (low, high) = (from, to + 1)
    while (low < high) {
      val middle = (low + high) >> 1
      if (holds(middle)) high = middle else low = middle + 1
    }
    low
  }

  /** The one bare column under a chain of functions that never decrease. */
  private def argument(e: Expression): Option[Expression] = e match {
    case _ if column(e).isDefined => Some(e)
    case c: Cast if rises(c.child.dataType, c.dataType) => argument(c.child)
    case Year(child) => argument(child)
    case TruncDate(date, format: Literal) if format.value != null => argument(date)
    case TruncTimestamp(format: Literal, time, _) if format.value != null => argument(time)
    case DateAdd(child, Literal(n: Int, _)) if near(n) => argument(child)
    case DateSub(child, Literal(n: Int, _)) if near(n) => argument(child)
    case _ => None
  }

  /** Days that cannot carry a date past the end of an int, where it would fall. */
  private def near(days: Int): Boolean = days > -100000000 && days < 100000000

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

  private case class Domain(low: BigInt, high: BigInt, value: BigInt => Any)

  // Dates and times are searched from year 1 to 9999; what lies outside counts as unbounded.
  private val days = (BigInt(-719162), BigInt(2932896))
  private val micros = (BigInt(-62135596800000000L), BigInt(253402300799999999L))

  private def domain(t: DataType): Option[Domain] = t match {
    case ByteType => Some(Domain(Byte.MinValue.toInt, Byte.MaxValue.toInt, _.toByte))
    case ShortType => Some(Domain(Short.MinValue.toInt, Short.MaxValue.toInt, _.toShort))
    case IntegerType => Some(Domain(Int.MinValue, Int.MaxValue, _.toInt))
    case LongType => Some(Domain(Long.MinValue, Long.MaxValue, _.toLong))
    case DateType => Some(Domain(days._1, days._2, _.toInt))
    case TimestampType | TimestampNTZType => Some(Domain(micros._1, micros._2, _.toLong))
    case d: DecimalType if d.precision <= Decimal.MAX_LONG_DIGITS =>
      val most = BigInt(10).pow(d.precision) - 1
      Some(Domain(-most, most, x => Decimal(x.toLong, d.precision, d.scale)))
    case FloatType =>
      // Ordered images of the finite floats and the infinities.
      def float(i: Int): Float = java.lang.Float.intBitsToFloat(if (i >= 0) i else i ^ Int.MaxValue)
      val top = java.lang.Float.floatToRawIntBits(Float.PositiveInfinity)
      Some(Domain(-top - 1, top, x => float(x.toInt)))
    case _ => None
  }

  private def zoned(f: Expression): Boolean = f.exists {
    case c: Cast => c.needsTimeZone
    case _: TruncTimestamp => true
    case _ => false
  }

  /**
   * Where clocks are set back, local time runs twice through the same stretch, so that f falls once.
   * A bound within two days of such a stretch gives way by its length.
   */
  private def overlap(x: BigInt, t: DataType, f: Expression): BigInt = {
    val zones = f.collect { case z: TimeZoneAwareExpression => z.timeZoneId }.flatten.distinct
    val (unit, perDay) = if (t == DateType) (86400L, 1L) else (1L, 86400000000L)
    val seconds = (if (t == DateType) x * unit else x / 1000000L).toLong
    val from = Instant.ofEpochSecond(seconds - 2 * 86400L)
    val to = Instant.ofEpochSecond(seconds + 2 * 86400L)
    val back = zones.map { id =>
      val rules = DateTimeUtils.getZoneId(id).getRules
      Iterator.iterate(rules.nextTransition(from))(n => rules.nextTransition(n.getInstant))
        .takeWhile(n => n != null && n.getInstant.isBefore(to))
        .map(n => math.abs(n.getDuration.getSeconds)).sum
    }.sum
    if (back == 0) BigInt(0) else if (t == DateType) BigInt(2 * perDay) else BigInt(back) * 1000000L
  }
}
