package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, GetStructField, Literal}
import org.apache.spark.sql.catalyst.expressions.variant.VariantGet
import org.apache.spark.sql.execution.datasources.VariantMetadata
import org.apache.spark.sql.types.{DataType, StructType, VariantType}

/** Columns of the type VARIANT. A scan can have such a column as a struct of the parts that a query needs. */
object Variants {
  /** A column with its type in the table. */
  def whole(column: Attribute): Attribute = if (isPushed(column.dataType)) column.withDataType(VariantType) else column

  /** An expression of whole columns. */
  def withoutPushed(e: Expression): Expression = e.transformDown {
    case GetStructField(column: Attribute, at, _) if isPushed(column.dataType) =>
      val field = column.dataType.asInstanceOf[StructType](at)
      val part = VariantMetadata.fromMetadata(field.metadata)
      VariantGet(whole(column), Literal(part.path), field.dataType, part.failOnError, Some(part.timeZoneId))
  }

  /** True if a scan reads only parts of a VARIANT, as the fields of a struct. */
  def isPushed(of: DataType): Boolean = VariantMetadata.isVariantStruct(of)
}
