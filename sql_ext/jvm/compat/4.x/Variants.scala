package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction
import org.apache.spark.sql.catalyst.expressions.{Attribute, Cast, EvalMode, Expression, GetStructField, Literal}
import org.apache.spark.sql.catalyst.expressions.variant.VariantGet
import org.apache.spark.sql.execution.datasources.VariantMetadata
import org.apache.spark.sql.types.{DataType, StructType, VariantType}

/**
 * Handles columns of type VARIANT. If a query needs only parts of a VARIANT, the query's scan can return a struct of
 * these parts instead.
 */
object Variants {
  /**
   * If the scan reads only parts of a VARIANT, returns the column with the type VARIANT. Returns any other column
   * unchanged.
   */
  def whole(column: Attribute): Attribute = if (isPushed(column.dataType)) column.withDataType(VariantType) else column

  /**
   * Replaces each pushed-down part of a VARIANT by an expression that extracts the part from the whole column. If the
   * part has a cast, the expression also converts the part, as in `variant_get(v, '$.a', 'int')`.
   */
  def withoutPushed(e: Expression): Expression = e.transformDown {
    case GetStructField(column: Attribute, at, _) if isPushed(column.dataType) =>
      val field = column.dataType.asInstanceOf[StructType](at)
      val part = VariantMetadata.fromMetadata(field.metadata)
      VariantGet(whole(column), Literal(part.path), field.dataType, part.failOnError, Some(part.timeZoneId))
  }.transformUp {
    case Cast(VariantGet(column, path, VariantType, _, own), to, zone, mode @ (EvalMode.ANSI | EvalMode.TRY)) =>
      VariantGet(column, path, to, mode == EvalMode.ANSI, zone.orElse(own))
  }

  /**
   * Replaces each expression that extracts a typed part of a VARIANT by a call with the type as an argument. Catalyst's
   * own SQL of the expression lacks the type.
   */
  def withTypes(e: Expression): Expression = e.transformUp {
    case get @ VariantGet(column, path, to, _, _) => UnresolvedFunction(get.prettyName, Seq(column, path, Literal(to.sql)), isDistinct = false)
  }

  /** True for the struct type that replaces VARIANT when a scan reads only parts of the VARIANT. */
  def isPushed(of: DataType): Boolean = VariantMetadata.isVariantStruct(of)
}
