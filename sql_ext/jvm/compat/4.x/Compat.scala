package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.analysis.PosParameterizedQuery
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.types.DataType

/**
 * The code for Spark 4.x that differs from the code for other releases. In Spark 4.x, a session that plans queries has
 * the class `classic.SparkSession`.
 */
object Compat {
  type Session = SparkSession

  /**
   * The condition that `key` equals `keys(at)` in some row of the plan `build`. Spark evaluates this condition only if
   * a join on `keys` broadcasts `build`.
   */
  def pruning(key: Expression, build: LogicalPlan, keys: Seq[Expression], at: Int): Expression =
    DynamicPruningSubquery(key, build, keys, Seq(at), onlyInBroadcast = true)

  def withPositions(plan: LogicalPlan, values: Seq[Expression]): LogicalPlan =
    PosParameterizedQuery(plan, values)

  /**
   * True if equal values of a type have equal bytes, so that Spark can hash them; false for texts with some collations.
   */
  def isHashed(of: DataType): Boolean = UnsafeRowUtils.isBinaryStable(of)

  def frame(session: Session, plan: LogicalPlan): DataFrame = Dataset.ofRows(session, plan)
}
