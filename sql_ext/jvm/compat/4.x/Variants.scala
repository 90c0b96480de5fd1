package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, GetStructField, Literal}
import org.apache.spark.sql.catalyst.expressions.variant.VariantGet
import org.apache.spark.sql.execution.datasources.VariantMetadata
import org.apache.spark.sql.types.{DataType, StructType, VariantType}

/**
 * Columns of type VARIANT. If a query needs only parts of a VARIANT, the query's scan can return a struct of these
 * parts.
 */
object Variants {
  /** A column with the type that it has in the table. */
  def whole(column: Attribute): Attribute = if (isPushed(column.dataType)) column.withDataType(VariantType) else column

  /** Replaces the pushed-down parts of a VARIANT in an expression by expressions over the whole column. */
  def withoutPushed(e: Expression): Expression = e.transformDown {
    case GetStructField(column: Attribute, at, _) if isPushed(column.dataType) =>
      val field = column.dataType.asInstanceOf[StructType](at)
      val part = VariantMetadata.fromMetadata(field.metadata)
      VariantGet(whole(column), Literal(part.path), field.dataType, part.failOnError, Some(part.timeZoneId))
  }

  /** True for the struct type that represents a VARIANT if a scan reads only parts of the VARIANT. */
  def isPushed(of: DataType): Boolean = VariantMetadata.isVariantStruct(of)
}
