package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.types.DataType

/** Handles VARIANT columns, which Spark 3.5 does not have. */
object Variants {
  /** Returns the column unchanged, because Spark 3.5 has no VARIANT columns. */
  def whole(column: Attribute): Attribute = column

  /** Returns the expression unchanged, because Spark 3.5 has no VARIANT columns. */
  def withoutPushed(e: Expression): Expression = e

  /** Returns the expression unchanged, because Spark 3.5 has no VARIANT columns. */
  def withTypes(e: Expression): Expression = e

  /** False for every type, because Spark 3.5 has no VARIANT columns. */
  def isPushed(of: DataType): Boolean = false
}
