package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.analysis.PosParameterizedQuery
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.types.DataType

/** The code that differs between Spark's release lines: here 4.x, where the planning session is `classic`. */
object Compat {
  type Session = SparkSession

  /** `key IN keys(at) of build`, evaluated only if a join with these keys broadcasts `build`. */
  def pruning(key: Expression, build: LogicalPlan, keys: Seq[Expression], at: Int): Expression =
    DynamicPruningSubquery(key, build, keys, Seq(at), onlyInBroadcast = true)

  def withPositions(plan: LogicalPlan, values: Seq[Expression]): LogicalPlan =
    PosParameterizedQuery(plan, values)

  /** Whether values of a type are equal if and only if their bytes are equal; false for some collations of text. */
  def isHashed(of: DataType): Boolean = UnsafeRowUtils.isBinaryStable(of)

  def frame(session: Session, plan: LogicalPlan): DataFrame = Dataset.ofRows(session, plan)
}
