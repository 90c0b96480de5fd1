package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.types.DataType

/** Columns of the type VARIANT, which Spark 3.5 does not have. */
object Variants {
  /** A column with its type in the table. */
  def whole(column: Attribute): Attribute = column

  /** An expression of whole columns. */
  def withoutPushed(e: Expression): Expression = e

  /** True if a scan reads only parts of a VARIANT, as the fields of a struct. */
  def isPushed(of: DataType): Boolean = false
}
