package org.apache.spark.sql.sieve

import scala.util.Try

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types._

/**
 * Turns `f(column) op literal`, f a chain of rising functions, into ranges of the column: each
 * function is Spark's own expression, evaluated by Spark, and the bounds on its argument are found
 * by bisection over the part on which it rises. What lies outside of that part is in the ranges, too.
 *
 * @param column the type of an expression that is a bare column, None for any other
 */
class Monotone(column: Expression => Option[DataType]) {
  /** Ordinals, both included. */
  private type Range = (BigInt, BigInt)

  /**
   * The column with ranges of its values, each with the least and the greatest (both included, None:
   * unbounded): one of them holds every value for which the comparison is TRUE. None: not solvable.
   */
  def solve(
      f: Expression, op: String, v: Any): Option[(Expression, Seq[(Option[Any], Option[Any])])] =
    for {
      rising <- Rising.of(f)
      // Something cannot be evaluated: then nothing is known.
      ranges <- Try(compared(f, rising, op, v)).toOption.flatten
      solved <- invert(rising.argument, ranges)
    } yield solved

  /** The column's values for which `e`, a chain of rising functions of it, is in some of `ranges`. */
  private def invert(
      e: Expression, ranges: Seq[Range]): Option[(Expression, Seq[(Option[Any], Option[Any])])] =
    if (column(e).isDefined) {
      Ordinals.of(e.dataType).map { all =>
        // A bound at the end of a type says nothing of values beyond it, as decimals may have.
        (e, ranges.map { case (from, to) =>
          (Some(from).filter(_ > all.low).map(all.value), Some(to).filter(_ < all.high).map(all.value))
        })
      }
    } else for {
      rising <- Rising.of(e)
      below <- Try(ranges.flatMap(between(e, rising, _)) ++ outside(rising)).toOption
      solved <- invert(rising.argument, below)
    } yield solved

  /** Arguments for which a comparison of the function with a constant is TRUE. */
  private def compared(f: Expression, rising: Rising, op: String, v: Any): Option[Seq[Range]] = {
    val least = start(f, rising, v, orEqual = true)
    val above = start(f, rising, v, orEqual = false)
    val range = op match {
      case "=" => Some((least, above - 1))
      case "<" => Some((rising.low, least - 1))
      case "<=" => Some((rising.low, above - 1))
      case ">" => Some((above, rising.high))
      case ">=" => Some((least, rising.high))
      case _ => None
    }
    range.map { case (from, to) =>
      widened(rising, from, to).toSeq ++ outside(rising)
    }
  }

  /** Arguments for which the function's result is in a range of its type. */
  private def between(f: Expression, rising: Rising, range: Range): Option[Range] =
    Ordinals.of(f.dataType).flatMap { results =>
      val from = start(f, rising, results.value(range._1), orEqual = true)
      val after = start(f, rising, results.value(range._2), orEqual = false)
      // A bound at the end of a type bounds nothing.
      val low = if (range._1 == results.low) rising.low else from
      val high = if (range._2 == results.high) rising.high else after - 1
      widened(rising, low, high)
    }

  /** The first argument whose result is above `v`, or equal to it; `high + 1` where there is none. */
  private def start(f: Expression, rising: Rising, v: Any, orEqual: Boolean): BigInt = {
    val argument = rising.argument
    val bound = f.mapChildren { c =>
      if (c eq argument) BoundReference(0, argument.dataType, nullable = true) else c
    }
    val order = TypeUtils.getInterpretedOrdering(f.dataType)
    val arguments = Ordinals.of(argument.dataType).get
    var (low, high) = (rising.low, rising.high + 1)
    while (low < high) {
      val middle = (low + high) >> 1
      val found = order.compare(bound.eval(InternalRow(arguments.value(middle))), v)
      if (found > 0 || orEqual && found == 0) high = middle else low = middle + 1
    }
    low
  }

  /** A range that gives way at either end if the function falls there for a while; None: empty. */
  private def widened(rising: Rising, from: BigInt, to: BigInt): Option[Range] = {
    def slack(at: BigInt): BigInt = rising.slack(at.max(rising.low).min(rising.high))
    // At its ends it holds what lies beyond, such as a decimal of more digits than its type has.
    val low = (from - slack(from)).max(rising.low).min(rising.high)
    val high = (to + slack(to + 1)).min(rising.high).max(rising.low)
    if (low <= high) Some((low, high)) else None
  }

  private def outside(rising: Rising): Seq[Range] =
    Ordinals.of(rising.argument.dataType).toSeq.flatMap { all =>
      Seq((all.low, rising.low - 1), (rising.high + 1, all.high)).filter { case (from, to) => from <= to }
    }
}
