package org.apache.spark.sql.sieve.predicate

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._

/**
 * A predicate on an array that is TRUE only if at least one element satisfies the predicate `holds`.
 *
 * @param variable the variable that represents the element in `holds`
 */
private final case class ElementPredicate(array: Expression, variable: NamedLambdaVariable, holds: Expression) {
  /**
   * Rewrites `holds` for indexed arrays. In the result, a variable represents the elements of each indexed array, and a
   * map contains the key of the array's index for each variable. An index on an array of structs can contain one field
   * of each struct. None if no index covers any part of `holds`.
   *
   * @param key returns the key of the index on an array
   */
  def indexed(key: Expression => Option[Seq[String]]): Option[(Expression, Map[ExprId, Seq[String]])] =
    key(array).map(own => (holds, Map(variable.exprId -> own))).orElse {
      val fields = holds.collect { case field: GetStructField => field }
        .flatMap(field => arrayOf(field).flatMap(key).map(field.canonicalized -> _)).toMap
      val variables = fields.keys.map(f => f -> NamedLambdaVariable("field", f.dataType, nullable = true)).toMap
      if (fields.isEmpty) None
      else Some((
        holds.transformDown { case field: GetStructField => variables.getOrElse(field.canonicalized, field) },
        fields.map { case (field, own) => variables(field).exprId -> own }))
    }

  /** The array that contains a field's value for each struct of an array. */
  private def arrayOf(e: Expression): Option[Expression] = e match {
    case v: NamedLambdaVariable if v.exprId == variable.exprId => Some(array)
    case g: GetStructField => arrayOf(g.child).map { structs =>
      val ArrayType(struct: StructType, containsNull) = structs.dataType: @unchecked
      GetArrayStructFields(structs, struct(g.ordinal), g.ordinal, struct.length, containsNull || struct(g.ordinal).nullable)
    }
    case _ => None
  }
}

private object ElementPredicate {
  def unapply(e: Expression): Option[ElementPredicate] = e match {
    case ArrayContains(array, value) if value.foldable => made(array)(EqualTo(_, value))
    case ArraysOverlap(array, Literal(values: ArrayData, ArrayType(of, _))) => made(array)(among(_, values, of))
    case ArraysOverlap(Literal(values: ArrayData, ArrayType(of, _)), array) => made(array)(among(_, values, of))
    case ArrayExists(array, LambdaFunction(holds, Seq(variable: NamedLambdaVariable), _), _) =>
      Some(ElementPredicate(array, variable, holds))
    case _ => None
  }

  private def made(array: Expression)(holds: Expression => Expression): Option[ElementPredicate] = array.dataType match {
    case ArrayType(of, _) =>
      val variable = NamedLambdaVariable("element", of, nullable = true)
      Some(ElementPredicate(array, variable, holds(variable)))
    case _ => None
  }

  private def among(variable: Expression, values: ArrayData, of: DataType): Expression =
    values.toSeq[Any](of).filter(_ != null).map(Literal(_, of)) match {
      case Seq() => Literal.FalseLiteral
      case some => In(variable, some)
    }
}
