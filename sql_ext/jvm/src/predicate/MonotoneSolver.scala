package org.apache.spark.sql.sieve.predicate

import scala.util.Try
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types._

/**
 * Translates `f(column) op literal`, where f is a chain of monotone functions, into ranges of the column's values.
 * Spark itself evaluates the functions. The solver finds the bounds of the argument by bisection over the values for
 * which the function is monotone. The ranges also contain all arguments for which the function is not known to be
 * monotone.
 *
 * The position of an argument is its ordinal, or the negative ordinal if the function falls. So the function's result
 * never decreases when the position increases.
 *
 * @param column returns the type of an expression that is a plain column, and None for any other expression
 */
class MonotoneSolver(column: Expression => Option[DataType]) {
  /** A range of ordinals or positions. Both ends are inclusive. */
  private type Range = (BigInt, BigInt)
  /**
   * A column, and ranges of its values. Each range has a least and a greatest value, both inclusive. None stands for a
   * missing bound.
   */
  private type Solution = (Expression, Seq[(Option[Any], Option[Any])])

  /**
   * Returns ranges that contain every value for which the comparison is TRUE. Returns None if the ranges cannot be
   * found.
   */
  def solve(f: Expression, op: String, v: Any): Option[Solution] = for {
    function <- MonotoneFunction.of(f)
    // If Spark cannot evaluate the function for an argument, the bounds are unknown.
    ranges <- Try(compared(new Search(f, function), op, v)).toOption.flatten
    solved <- invert(function.argument, ranges)
  } yield solved

  /**
   * Returns the column's values for which the result of `e`, a chain of monotone functions, is in one of the ranges.
   */
  private def invert(e: Expression, ranges: Seq[Range]): Option[Solution] =
    if (column(e).isDefined) NumberedValues.of(e.dataType).map { all =>
      // Drops a bound that is the least or greatest value of the column's type. The range then also contains values
      // outside the type, such as decimals with more digits.
      (e, ranges.map { case (from, to) =>
        (Some(from).filter(_ > all.low).map(all.value), Some(to).filter(_ < all.high).map(all.value))
      })
    } else for {
      function <- MonotoneFunction.of(e)
      results <- NumberedValues.of(e.dataType)
      search = new Search(e, function)
      below <- Try(ranges.flatMap(between(search, results, _)) ++ search.outside).toOption
      solved <- invert(function.argument, below)
    } yield solved

  /** Returns the arguments for which a comparison of the function's result with a constant is TRUE. */
  private def compared(search: Search, op: String, v: Any): Option[Seq[Range]] = {
    lazy val least = search.start(v, orEqual = true)
    lazy val above = search.start(v, orEqual = false)
    val range = op match {
      case "=" => Some((least, above - 1))
      case "<" => Some((search.low, least - 1))
      case "<=" => Some((search.low, above - 1))
      case ">" => Some((above, search.high))
      case ">=" => Some((least, search.high))
      case _ => None
    }
    range.map { case (from, to) => search.widened(from, to).toSeq ++ search.outside }
  }

  /** Returns the arguments for which the function's result is in a range. */
  private def between(search: Search, results: NumberedValues, range: Range): Option[Range] =
    // If a bound is the least or greatest value of the type, it excludes no argument.
    search.widened(
      if (range._1 == results.low) search.low else search.start(results.value(range._1), orEqual = true),
      if (range._2 == results.high) search.high else search.start(results.value(range._2), orEqual = false) - 1)

  /** A search over the arguments of a function. */
  private class Search(f: Expression, function: MonotoneFunction) {
    private val argument = function.argument
    private val all = NumberedValues.of(argument.dataType).get
    private val order = TypeUtils.getInterpretedOrdering(f.dataType)
    private val bound = f.transform {
      case c if c eq argument => BoundReference(0, argument.dataType, nullable = true)
    }
    /** The first and the last position for which the function is monotone. */
    val (low, high) = if (function.rises) (function.low, function.high) else (-function.high, -function.low)

    private def ordinal(position: BigInt): BigInt = if (function.rises) position else -position

    /**
     * Returns the first position whose result is greater than `v`. If `orEqual` is set, a result that equals `v` also
     * counts. If no result is great enough, returns `high + 1`.
     */
    def start(v: Any, orEqual: Boolean): BigInt = {
      var (from, to) = (low, high + 1)
      while (from < to) {
        val middle = (from + to) >> 1
        val found = order.compare(bound.eval(InternalRow(all.value(ordinal(middle)))), v)
        if (found > 0 || orEqual && found == 0) to = middle else from = middle + 1
      }
      from
    }

    /**
     * Widens a range of positions at each end by the function's `slack`, and returns the range of the arguments.
     * Returns None if the range is empty.
     */
    def widened(from: BigInt, to: BigInt): Option[Range] = {
      def clamp(at: BigInt): BigInt = at.max(low).min(high)
      def slack(at: BigInt): BigInt = function.slackNear(ordinal(clamp(at)).toLong)
      // The last position also stands for values outside the type, such as decimals with more digits. So if a range is
      // beyond the last position, clamping results in the last position, not in an empty range.
      val (first, last) = (clamp(from - slack(from)), clamp(to + slack(to + 1)))
      if (first > last) None
      else if (function.rises) Some((first, last))
      else Some((-last, -first))
    }

    /** The arguments for which the function is not known to be monotone. */
    def outside: Seq[Range] = Seq((all.low, function.low - 1), (function.high + 1, all.high))
      .filter { case (from, to) => from <= to }
  }
}

object MonotoneSolver {
  /**
   * The maximum number of values in an IN list. The solver ignores a longer list, because each value needs two searches
   * over the values of the argument's type.
   */
  val mostValues = 20
}
