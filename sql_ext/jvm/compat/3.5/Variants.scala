package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.types.DataType

/** Columns of type VARIANT, which Spark 3.5 lacks. */
object Variants {
  /** A column with the type that it has in the table. */
  def whole(column: Attribute): Attribute = column

  /** Returns the expression, because Spark 3.5 has no pushed-down parts of a VARIANT. */
  def withoutPushed(e: Expression): Expression = e

  /** True for the struct type that represents a VARIANT if a scan reads only parts of the VARIANT. */
  def isPushed(of: DataType): Boolean = false
}
