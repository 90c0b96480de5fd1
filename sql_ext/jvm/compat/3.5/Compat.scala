package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.catalyst.analysis.PosParameterizedQuery
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.DataType

/** The code that differs between Spark's release lines: here 3.5, with one session class for all. */
object Compat {
  type Session = SparkSession

  /** `key IN keys(at) of build`, evaluated only if a join with these keys broadcasts `build`. */
  def pruning(key: Expression, build: LogicalPlan, keys: Seq[Expression], at: Int): Expression =
    DynamicPruningSubquery(key, build, keys, at, onlyInBroadcast = true)

  def withPositions(plan: LogicalPlan, values: Seq[Expression]): LogicalPlan =
    PosParameterizedQuery(plan, values.toArray)

  /** Whether values of a type are equal if and only if their bytes are equal; false for some collations of text. */
  def isHashed(of: DataType): Boolean = true

  def frame(session: Session, plan: LogicalPlan): DataFrame = Dataset.ofRows(session, plan)
}
