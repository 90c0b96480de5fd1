package org.apache.spark.sql.sieve.predicate

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, GetArrayStructFields, GetStructField}
import org.apache.spark.sql.sieve.base.Variants
import org.apache.spark.sql.types.{ArrayType, StructType}

object ColumnPath {
  /**
   * Returns the path of a plain column or of a field of a struct. Returns None for any other expression.
   *
   * @param name returns a column's name in the table, or None if the column must be ignored
   */
  def of(e: Expression, name: Attribute => Option[String]): Option[Seq[String]] = e match {
    case a: Attribute => name(a).map(Seq(_))
    case g: GetStructField if !Variants.isPushed(g.child.dataType) =>
      of(g.child, name).map(_ :+ g.childSchema(g.ordinal).name)
    case _ => None
  }

  /**
   * Returns the path of a field of the structs in an array, such as `items.price`. Returns None for any other
   * expression.
   *
   * @param path returns the path of a plain column
   */
  def inArray(e: Expression, path: Expression => Option[Seq[String]]): Option[Seq[String]] = e match {
    case g: GetArrayStructFields =>
      // `g.field` contains the name as the query spells it, possibly in another case. The schema contains the column's
      // own spelling.
      val ArrayType(struct: StructType, _) = g.child.dataType: @unchecked
      path(g.child).orElse(inArray(g.child, path)).map(_ :+ struct(g.ordinal).name)
    case _ => None
  }
}
