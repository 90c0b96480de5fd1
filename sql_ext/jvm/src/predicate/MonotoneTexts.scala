package org.apache.spark.sql.sieve.predicate

import java.time.LocalDate
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeConstants.{MICROS_PER_DAY, MICROS_PER_SECOND}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The functions that format a date or time as text of fixed width, beginning with the year. Examples are `CAST(ts AS
 * STRING)` and `date_format(ts, 'yyyy-MM')`. These texts sort in the order of the times. So an order-preserving
 * function of the text, for example its prefix, is a monotone function of the time.
 */
private object MonotoneTexts {
  import MonotoneFunction.between

  /**
   * Matches a pattern for text of fixed width. The pattern contains fields from the year downwards, separated by
   * constant text.
   */
  private val fixedWidth = {
    val constant = "(?:[^A-Za-z'\\[\\]{}#]|'[^']*')*"
    val fields = Seq("MM", "dd", "HH", "mm", "ss", "S{1,9}").foldRight("")((field, rest) => s"(?:$field$constant$rest)?")
    s"yyyy$constant$fields".r
  }

  def of(e: Expression): Option[MonotoneFunction] = e match {
    case c @ Cast(child, StringType, _, _) => text(c, child)
    case f @ DateFormatClass(time, Literal(pattern: UTF8String, StringType), _) if isFixed(pattern) =>
      times(time, MICROS_PER_DAY, formatted, ClockChanges.back(MonotoneTimes.zone(f), _))
    case f @ FromUnixTime(seconds, Literal(pattern: UTF8String, StringType), _) if isFixed(pattern) =>
      val zone = MonotoneTimes.zone(f)
      times(seconds, MICROS_PER_DAY / MICROS_PER_SECOND, formatted,
        at => ClockChanges.back(zone, at * MICROS_PER_SECOND) / MICROS_PER_SECOND)
    case Substring(written, Literal(0 | 1, _), Literal(_: Int, _)) if written.dataType == StringType => of(written)
    case Cast(written, _: IntegralType, _, _) if written.dataType == StringType => of(written)
    // Excludes prefixes of texts, because some prefixes, such as '2026-03-0', are neither a date nor a time.
    case Cast(written, DateType, _, _) if isWhole(written) => of(written)
    // The text can be a local time that the clocks of the time zone skip or repeat.
    case c @ Cast(written, TimestampType, _, _) if isWhole(written) => of(written).collect {
      case f if f.argument.dataType == TimestampType || f.argument.dataType == TimestampNTZType =>
        f.copy(slack = at => f.slack(at) + ClockChanges.both(MonotoneTimes.zone(c), at))
      case f if f.argument.dataType == LongType => f.copy(slack = at => f.slack(at) +
        ClockChanges.both(MonotoneTimes.zone(c), at * MICROS_PER_SECOND) / MICROS_PER_SECOND)
    }
    case _ => None
  }

  private def isWhole(e: Expression) = e.dataType == StringType && !e.isInstanceOf[Substring]

  private def text(c: Cast, child: Expression): Option[MonotoneFunction] = child.dataType match {
    case DateType => times(child, 1, written, _ => 0)
    case TimestampNTZType => times(child, MICROS_PER_DAY, written, _ => 0)
    case TimestampType => times(child, MICROS_PER_DAY, written, ClockChanges.back(MonotoneTimes.zone(c), _))
    case _ => None
  }

  private val written = LocalDate.of(1, 1, 3)
  // The first day for which formatting with a pattern is monotone. Spark formats times before the Gregorian calendar by
  // other rules than later times.
  private val formatted = LocalDate.of(1600, 1, 1)
  private val last = LocalDate.of(9999, 12, 29)

  /**
   * Creates the function that formats a time. The function is monotone for times whose year has four digits in every
   * time zone.
   */
  private def times(
      time: Expression, unitsPerDay: Long, first: LocalDate, slack: BigInt => BigInt): Option[MonotoneFunction] =
    between(time, first.toEpochDay * BigInt(unitsPerDay), last.toEpochDay * BigInt(unitsPerDay), slack)

  private def isFixed(pattern: UTF8String): Boolean =
    fixedWidth.pattern.matcher(pattern.toString).matches &&
      SQLConf.get.legacyTimeParserPolicy.toString != "LEGACY"
}
