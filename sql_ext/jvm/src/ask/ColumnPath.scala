package org.apache.spark.sql.sieve.ask

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, GetArrayStructFields, GetStructField}
import org.apache.spark.sql.sieve.base.Variants
import org.apache.spark.sql.types.{ArrayType, StructType}

object ColumnPath {
  /**
   * The path of a plain column, or of a field of a struct. None for any other expression.
   *
   * @param name the name of a column in the table; None for a column that does not count
   */
  def of(e: Expression, name: Attribute => Option[String]): Option[Seq[String]] = e match {
    case a: Attribute => name(a).map(Seq(_))
    case g: GetStructField if !Variants.isPushed(g.child.dataType) =>
      of(g.child, name).map(_ :+ g.childSchema(g.ordinal).name)
    case _ => None
  }

  /**
   * The path of a field of the structs in an array, such as `items.price`. None for any other expression.
   *
   * @param path the path of a plain column
   */
  def inArray(e: Expression, path: Expression => Option[Seq[String]]): Option[Seq[String]] = e match {
    case g: GetArrayStructFields =>
      // The name in `g.field` is the name in the query, in any case.
      val ArrayType(struct: StructType, _) = g.child.dataType: @unchecked
      path(g.child).orElse(inArray(g.child, path)).map(_ :+ struct(g.ordinal).name)
    case _ => None
  }
}
