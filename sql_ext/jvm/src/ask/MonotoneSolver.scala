package org.apache.spark.sql.sieve.ask

import scala.util.Try
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types._

/**
 * Turns `f(column) op literal`, where f is a chain of monotone functions, into ranges of the column. Each function is
 * Spark's own expression, evaluated by Spark. The solver finds the bounds of the argument by bisection over the values
 * for which the function is monotone. The ranges also contain all values outside the monotone part of a function.
 *
 * @param column returns the type of an expression that is a plain column, and None for any other expression
 */
class MonotoneSolver(column: Expression => Option[DataType]) {
  /** A range of ordinals, both ends included. */
  private type Range = (BigInt, BigInt)
  /**
   * A column, and ranges of its values. Each range has its least and greatest value, both included. None means that
   * the range has no bound.
   */
  private type Solution = (Expression, Seq[(Option[Any], Option[Any])])

  /**
   * Returns ranges that contain every value for which the comparison is TRUE. None if the ranges cannot be found.
   */
  def solve(f: Expression, op: String, v: Any): Option[Solution] = for {
    function <- MonotoneFunction.of(f)
    // If an evaluation fails, the bounds are unknown.
    ranges <- Try(compared(f, function, op, v)).toOption.flatten
    solved <- invert(function.argument, ranges)
  } yield solved

  /**
   * Returns the values of the column for which `e` is in one of the `ranges`. `e` is a chain of monotone functions.
   */
  private def invert(e: Expression, ranges: Seq[Range]): Option[Solution] =
    if (column(e).isDefined) NumberedValues.of(e.dataType).map { all =>
      // If a bound is the least or greatest value of its type, values outside the type, such as decimals with more
      // digits, satisfy it, too.
      (e, ranges.map { case (from, to) =>
        (Some(from).filter(_ > all.low).map(all.value), Some(to).filter(_ < all.high).map(all.value))
      })
    } else for {
      function <- MonotoneFunction.of(e)
      below <- Try(ranges.flatMap(between(e, function, _)) ++ outside(function)).toOption
      solved <- invert(function.argument, below)
    } yield solved

  /** Returns the arguments for which a comparison of the function's result with a constant is TRUE. */
  private def compared(f: Expression, function: MonotoneFunction, op: String, v: Any): Option[Seq[Range]] = {
    val least = start(f, function, v, orEqual = true)
    val above = start(f, function, v, orEqual = false)
    val range = op match {
      case "=" => Some((least, above - 1))
      case "<" => Some((function.low, least - 1))
      case "<=" => Some((function.low, above - 1))
      case ">" => Some((above, function.high))
      case ">=" => Some((least, function.high))
      case _ => None
    }
    range.map { case (from, to) => widened(function, from, to).toSeq ++ outside(function) }
  }

  /** Returns the arguments for which the function's result is in a range. */
  private def between(f: Expression, function: MonotoneFunction, range: Range): Option[Range] =
    NumberedValues.of(f.dataType).flatMap { results =>
      val from = start(f, function, results.value(range._1), orEqual = true)
      val after = start(f, function, results.value(range._2), orEqual = false)
      // A bound that is the least or greatest value of the type excludes no argument.
      widened(function, if (range._1 == results.low) function.low else from,
        if (range._2 == results.high) function.high else after - 1)
    }

  /**
   * Returns the first argument whose result is greater than `v`, or equal to `v` if `orEqual` is set. Returns `high
   * + 1` if there is no such argument.
   */
  private def start(f: Expression, function: MonotoneFunction, v: Any, orEqual: Boolean): BigInt = {
    val argument = function.argument
    val bound = f.mapChildren { c =>
      if (c eq argument) BoundReference(0, argument.dataType, nullable = true) else c
    }
    val order = TypeUtils.getInterpretedOrdering(f.dataType)
    val arguments = NumberedValues.of(argument.dataType).get
    var (low, high) = (function.low, function.high + 1)
    while (low < high) {
      val middle = (low + high) >> 1
      val found = order.compare(bound.eval(InternalRow(arguments.value(middle))), v)
      if (found > 0 || orEqual && found == 0) high = middle else low = middle + 1
    }
    low
  }

  /** Returns a range that is widened at each end by the function's `slack`. None if the range is empty. */
  private def widened(function: MonotoneFunction, from: BigInt, to: BigInt): Option[Range] = {
    def clamp(at: BigInt): BigInt = at.max(function.low).min(function.high)
    // A range that ends at the least or greatest value of the type also contains all values beyond it, such as
    // decimals with more digits.
    val low = clamp(from - function.slack(clamp(from)))
    val high = clamp(to + function.slack(clamp(to + 1)))
    if (low <= high) Some((low, high)) else None
  }

  private def outside(function: MonotoneFunction): Seq[Range] =
    NumberedValues.of(function.argument.dataType).toSeq.flatMap { all =>
      Seq((all.low, function.low - 1), (function.high + 1, all.high)).filter { case (from, to) => from <= to }
    }
}

object MonotoneSolver {
  /**
   * The solver ignores an IN list with more values than this, because each value needs two searches over the values
   * of the column's type.
   */
  val mostValues = 20
}
