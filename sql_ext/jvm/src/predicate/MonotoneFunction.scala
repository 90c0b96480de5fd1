package org.apache.spark.sql.sieve.predicate

import org.apache.spark.sql.catalyst.expressions._

/**
 * A function of one argument, with constants as its other operands. For arguments with ordinals from `low` to `high`
 * (both inclusive), the function does not fail. Among these arguments, the function never decreases if `rises` is true,
 * and never increases if `rises` is false. For other arguments, the function can overflow, fail, or break the order.
 * For a NULL argument, the result is NULL.
 *
 * @param slack returns the maximum distance between two arguments whose results are in the wrong order; considers only
 *              arguments near the given ordinal
 */
final case class MonotoneFunction(
    argument: Expression, low: BigInt, high: BigInt, slack: BigInt => BigInt = _ => 0, rises: Boolean = true) {
  /**
   * The result of `slack` for an ordinal, as a Long. Only functions of times have a slack greater than zero, and the
   * ordinals of times fit into a Long.
   */
  def slackNear(ordinal: Long): Long = slack(ordinal).toLong
}

object MonotoneFunction {
  /**
   * Returns an expression as a monotone function. Returns None if the order of the results is unknown, or if the values
   * of the argument's type have no ordinals. `MonotoneNumbers`, `MonotoneTimes` and `MonotoneTexts` list all functions
   * with a known order.
   */
  def of(e: Expression): Option[MonotoneFunction] =
    MonotoneNumbers.of(e).orElse(MonotoneTimes.of(e)).orElse(MonotoneTexts.of(e)).filter(f => f.low <= f.high)

  /**
   * Creates a function that is monotone for all arguments except the `margin` least and the `margin` greatest values of
   * the argument's type.
   */
  def within(
      argument: Expression, margin: BigInt = 0, slack: BigInt => BigInt = _ => 0,
      rises: Boolean = true): Option[MonotoneFunction] = NumberedValues.of(argument.dataType)
    .map(all => MonotoneFunction(argument, all.low + margin, all.high - margin, slack, rises))

  /** Creates a function that is monotone for arguments with ordinals from `from` to `to`. */
  def between(
      argument: Expression, from: BigInt, to: BigInt, slack: BigInt => BigInt = _ => 0,
      rises: Boolean = true): Option[MonotoneFunction] = NumberedValues.of(argument.dataType)
    .map(all => MonotoneFunction(argument, all.low.max(from), all.high.min(to), slack, rises))
}
