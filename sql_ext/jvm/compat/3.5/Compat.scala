package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.catalyst.analysis.PosParameterizedQuery
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.DataType

/**
 * The code for Spark 3.5 that differs from the code for other releases. In Spark 3.5, all sessions have the class
 * `SparkSession`.
 */
object Compat {
  type Session = SparkSession

  /**
   * Returns the condition that the plan `build` has a row whose value of `keys(at)` equals `key`. Spark evaluates this
   * condition only if a join on `keys` broadcasts the rows of `build`.
   */
  def pruning(key: Expression, build: LogicalPlan, keys: Seq[Expression], at: Int): Expression =
    DynamicPruningSubquery(key, build, keys, at, onlyInBroadcast = true)

  def withPositions(plan: LogicalPlan, values: Seq[Expression]): LogicalPlan =
    PosParameterizedQuery(plan, values.toArray)

  /**
   * True if equal values of a type have equal bytes. Spark can hash only values of such types. In Spark 3.5, all types
   * are such types, because text has no collations.
   */
  def isHashed(of: DataType): Boolean = true

  def frame(session: Session, plan: LogicalPlan): DataFrame = Dataset.ofRows(session, plan)
}
