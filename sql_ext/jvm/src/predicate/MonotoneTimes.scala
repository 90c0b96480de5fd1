package org.apache.spark.sql.sieve.predicate

import java.time.{Duration, Instant, ZoneId, ZoneOffset}
import java.util.Locale
import scala.util.Try
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeConstants._
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.{CalendarInterval, UTF8String}

/**
 * The monotone functions of dates and timestamps.
 *
 * A function of local time breaks the order where the clocks of its time zone change. A conversion to local time
 * decreases where the clocks are set back. A conversion from local time decreases where the clocks are set forward.
 */
private object MonotoneTimes {
  import MonotoneFunction.{between, within}

  private val microsPerDay = BigInt(MICROS_PER_DAY)
  // The number of days that are excluded at each end of a type's range. Truncation of a date subtracts at most a year
  // and a day, in any time zone.
  private val marginDays = BigInt(400)
  private val longestMonth = BigInt(31)
  // The maximum distance of a date from the epoch, in days. Some later or earlier dates are outside the range of
  // timestamps.
  private val mostDays = Long.MaxValue / microsPerDay - marginDays

  def of(e: Expression): Option[MonotoneFunction] = e match {
    case c: Cast => cast(c)
    case t: ToTimestamp => seconds(t, t.left)
    case UnixDate(child) => within(child)
    case DateFromUnixDate(child) => within(child)
    case UnixSeconds(child) => within(child)
    case UnixMillis(child) => within(child)
    case UnixMicros(child) => within(child)
    case SecondsToTimestamp(child) => micros(child, MICROS_PER_SECOND)
    case MillisToTimestamp(child) => micros(child, MICROS_PER_MILLIS)
    case MicrosToTimestamp(child) => within(child)
    case _ => dates(e).orElse(timestamps(e))
  }

  private def cast(c: Cast): Option[MonotoneFunction] = (c.child.dataType, c.dataType) match {
    case (DateType, TimestampType | TimestampNTZType) => between(c.child, -mostDays, mostDays)
    case (TimestampType, DateType) => within(c.child, 0, ClockChanges.back(zone(c), _))
    case (TimestampNTZType, DateType) => within(c.child)
    case (TimestampType, TimestampNTZType) => within(c.child, microsPerDay * 2, ClockChanges.back(zone(c), _))
    case (TimestampNTZType, TimestampType) => within(c.child, microsPerDay * 2, ClockChanges.both(zone(c), _))
    case _ => None
  }

  /** A function that returns a date or timestamp as seconds or microseconds. Returns None for a function of a text. */
  private def seconds(e: Expression, time: Expression): Option[MonotoneFunction] = time.dataType match {
    case DateType => between(time, -mostDays, mostDays)
    case TimestampType | TimestampNTZType => within(time)
    case _ => None
  }

  private def micros(child: Expression, unit: Long): Option[MonotoneFunction] = child.dataType match {
    case _: IntegralType => between(child, BigInt(Long.MinValue) / unit, BigInt(Long.MaxValue) / unit)
    case _ => None
  }

  private def dates(e: Expression): Option[MonotoneFunction] = e match {
    case Year(child) => within(child)
    case YearOfWeek(child) => within(child, 7)
    case LastDay(child) => within(child, longestMonth)
    case NextDay(child, Literal(name, _), _) if name != null => within(child, 7)
    case TruncDate(date, Literal(format, _)) if format != null => within(date, marginDays)
    case DateAdd(child, Literal(n: Int, _)) => moved(child, n)
    case DateSub(child, Literal(n: Int, _)) => moved(child, -BigInt(n))
    // Adding months can turn several last days of a month into the last day of a shorter month.
    case AddMonths(child, Literal(n: Int, _)) => moved(child, n * longestMonth, longestMonth)
    case DateAddYMInterval(child, Literal(n: Int, _)) => moved(child, n * longestMonth, longestMonth)
    case DateDiff(end, Literal(start: Int, _)) => moved(end, -BigInt(start))
    case DateDiff(Literal(end: Int, _), start) => falling(start, end, Int.MinValue, Int.MaxValue)
    case SubtractDates(end, Literal(start: Int, _), false) => between(end, start - mostDays, start + mostDays)
    case SubtractDates(Literal(end: Int, _), start, false) => falling(start, end, -mostDays, mostDays)
    case _ => None
  }

  /**
   * Creates the function that adds `days` to a date. The function is monotone only for dates whose result fits into an
   * INT, because greater results overflow.
   */
  private def moved(date: Expression, days: BigInt, margin: BigInt = 0): Option[MonotoneFunction] =
    between(date, Int.MinValue - days.min(-margin), Int.MaxValue - days.max(margin))

  /**
   * Creates the function that subtracts its argument from `end`, for arguments whose result is between `low` and
   * `high`.
   */
  private def falling(start: Expression, end: BigInt, low: BigInt, high: BigInt): Option[MonotoneFunction] =
    between(start, end - high, end - low, rises = false)

  private def timestamps(e: Expression): Option[MonotoneFunction] = e match {
    case t @ TruncTimestamp(Literal(format, _), time, _) if format != null =>
      within(time, microsPerDay * marginDays, ClockChanges.both(zone(t), _))
    case t: TimestampAddYMInterval => t.interval match {
      case Literal(months: Int, _) => shifted(t, t.timestamp, months, 0, 0)
      case _ => None
    }
    // TimestampAddInterval is the new name of TimeAdd since Spark 4.1.
    case t: BinaryExpression with TimeZoneAwareExpression if additions(t.getClass.getSimpleName) =>
      (t.left.dataType, t.right) match {
        case (TimestampType | TimestampNTZType, Literal(micros: Long, _: DayTimeIntervalType)) =>
          shifted(t, t.left, 0, micros / MICROS_PER_DAY, micros % MICROS_PER_DAY)
        case (TimestampType | TimestampNTZType, Literal(i: CalendarInterval, _)) =>
          shifted(t, t.left, i.months, i.days, i.microseconds)
        case _ => None
      }
    case t @ TimestampAdd(unit, Literal(n: Number, _), time, _) if time.dataType != DateType =>
      units.get(unit.toUpperCase(Locale.ROOT)).flatMap { case (months, micros) =>
        val whole = micros * n.longValue
        val (days, rest) = (whole / microsPerDay, whole % microsPerDay)
        if (math.abs(n.longValue.toDouble) > Int.MaxValue && months != 0 || !days.isValidLong) None
        else shifted(t, time, months * n.longValue, days.toLong, rest.toLong)
      }
    case t @ TimestampDiff(_, Literal(_: Long, _), end, _) => within(end, microsPerDay * 2, ClockChanges.back(zone(t), _))
    case t @ TimestampDiff(_, start, Literal(_: Long, _), _) =>
      within(start, microsPerDay * 2, ClockChanges.back(zone(t), _), rises = false)
    case s: SubtractTimestamps if s.dataType.isInstanceOf[DayTimeIntervalType] => (s.left, s.right) match {
      case (end, Literal(start: Long, _)) => apart(s, end, start, rises = true)
      case (Literal(end: Long, _), start) => apart(s, start, end, rises = false)
      case _ => None
    }
    case FromUTCTimestamp(time, Zone(to)) => within(time, microsPerDay * 2, ClockChanges.back(to, _))
    case ToUTCTimestamp(time, Zone(from)) => within(time, microsPerDay * 2, ClockChanges.both(from, _))
    case ConvertTimezone(Zone(from), Zone(to), time) => within(
      time, microsPerDay * 4, at => ClockChanges.both(from, at) + ClockChanges.both(to, at))
    case _ => None
  }
  private val additions = Set("TimeAdd", "TimestampAddInterval")
  /** The length of each unit of time in months and microseconds. */
  private val units: Map[String, (Long, BigInt)] = Map(
    "MICROSECOND" -> BigInt(1), "MILLISECOND" -> BigInt(MICROS_PER_MILLIS), "SECOND" -> BigInt(MICROS_PER_SECOND),
    "MINUTE" -> BigInt(MICROS_PER_MINUTE), "HOUR" -> BigInt(MICROS_PER_HOUR), "DAY" -> microsPerDay,
    "DAYOFYEAR" -> microsPerDay, "WEEK" -> microsPerDay * 7).map { case (unit, micros) => unit -> ((0L, micros)) } ++
    Map("MONTH" -> 1L, "QUARTER" -> 3L, "YEAR" -> 12L).map { case (unit, months) => unit -> ((months, BigInt(0))) }

  /**
   * Creates the function that adds an interval to a timestamp. Spark adds months and days to the local time. If the
   * clocks skip the local time of the sum, Spark moves the sum forward, possibly beyond the result for a later
   * timestamp. Adding months also breaks the order. The last days of a long month move to the last day of a shorter
   * month, and keep their times of day.
   */
  private def shifted(
      e: TimeZoneAwareExpression, time: Expression, months: Long, days: Long, micros: Long): Option[MonotoneFunction] = {
    val rules = if (time.dataType == TimestampNTZType) ZoneOffset.UTC else zone(e)
    // A month has between 28 and 31 days.
    val target = (months * 30 + days) * microsPerDay + micros
    val uncertain = ClockChanges.daysAround + (if (months == 0) 0 else 4 + math.abs(months) * 3)
    def slack(at: BigInt): BigInt = {
      val clipped = if (months != 0 && ClockChanges.isEndOfMonth(at)) microsPerDay * 4 else BigInt(0)
      clipped + ClockChanges.both(rules, at, uncertain) + ClockChanges.both(rules, at + target, uncertain)
    }
    if (months == 0 && days == 0) within(time, BigInt(micros).abs)
    else within(time, target.abs + uncertain * microsPerDay + microsPerDay, slack)
  }

  /** Creates the function that subtracts two local times and returns microseconds as a BIGINT. */
  private def apart(
      e: TimeZoneAwareExpression, time: Expression, other: BigInt, rises: Boolean): Option[MonotoneFunction] = {
    val margin = microsPerDay * 2
    NumberedValues.of(time.dataType).flatMap(all => between(
      time, (all.low + margin).max(other + Long.MinValue + margin), (all.high - margin).min(other + Long.MaxValue - margin),
      ClockChanges.back(zone(e), _), rises))
  }

  def zone(e: TimeZoneAwareExpression): ZoneId = DateTimeUtils.getZoneId(e.timeZoneId.get)

  private object Zone {
    def unapply(e: Expression): Option[ZoneId] = e match {
      case Literal(name: UTF8String, StringType) => Try(DateTimeUtils.getZoneId(name.toString)).toOption
      case _ => None
    }
  }
}

/** Computes by how much the clocks of a time zone change near a time. */
private object ClockChanges {
  val daysAround = 2L

  /** The number of microseconds by which clocks are set back within two days of `micros`. */
  def back(zone: ZoneId, micros: BigInt): BigInt = sum(zone, micros, daysAround)(math.max(0L, _))

  /** The number of microseconds by which clocks are set back or forward within `days` days of `micros`. */
  def both(zone: ZoneId, micros: BigInt, days: Long = daysAround): BigInt = sum(zone, micros, days)(math.abs)

  private def sum(zone: ZoneId, micros: BigInt, days: Long)(counted: Long => Long): BigInt = {
    val at = Instant.ofEpochSecond((micros / MICROS_PER_SECOND).toLong)
    val (from, to) = (at.minus(Duration.ofDays(days)), at.plus(Duration.ofDays(days)))
    val seconds = Iterator.iterate(zone.getRules.nextTransition(from))(n => zone.getRules.nextTransition(n.getInstant))
      .takeWhile(n => n != null && n.getInstant.isBefore(to))
      .map(n => counted(-n.getDuration.getSeconds)).sum
    BigInt(seconds) * MICROS_PER_SECOND
  }

  /** True if a time is near the end of a month: within two days of the month's last four days, in any time zone. */
  def isEndOfMonth(micros: BigInt): Boolean = {
    val day = Instant.ofEpochSecond((micros / MICROS_PER_SECOND).toLong).atZone(ZoneOffset.UTC).getDayOfMonth
    day <= 3 || day >= 26
  }
}
