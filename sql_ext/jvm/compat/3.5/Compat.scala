package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.catalyst.analysis.PosParameterizedQuery
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.DataType

/** The code that Spark 3.5 needs and other releases do not. Spark 3.5 has only one session class. */
object Compat {
  type Session = SparkSession

  /**
   * The condition that `key` equals `keys(at)` in some row of `build`. Spark evaluates the condition only if a join
   * with these keys broadcasts `build`.
   */
  def pruning(key: Expression, build: LogicalPlan, keys: Seq[Expression], at: Int): Expression =
    DynamicPruningSubquery(key, build, keys, at, onlyInBroadcast = true)

  def withPositions(plan: LogicalPlan, values: Seq[Expression]): LogicalPlan =
    PosParameterizedQuery(plan, values.toArray)

  /**
   * True if equal values of a type have equal bytes, so that Spark can hash these values. False for some collations of
   * text.
   */
  def isHashed(of: DataType): Boolean = true

  def frame(session: Session, plan: LogicalPlan): DataFrame = Dataset.ofRows(session, plan)
}
