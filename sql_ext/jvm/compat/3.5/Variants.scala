package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.types.DataType

/** Columns of type VARIANT, which Spark 3.5 lacks. */
object Variants {
  /** A column with the type that it has in the table. */
  def whole(column: Attribute): Attribute = column

  /** Returns the expression, because Spark 3.5 has no pushed-down parts of a VARIANT. */
  def withoutPushed(e: Expression): Expression = e

  /** True for the struct type of a VARIANT of which a scan reads only parts. */
  def isPushed(of: DataType): Boolean = false
}
