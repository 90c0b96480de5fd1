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
   * Rewrites `holds` for indexed arrays. Returns the rewritten predicate and a map. In the rewritten predicate, a
   * variable represents the elements of each indexed array. The map contains, for each variable, the key of the array's
   * index. An index on an array of structs can contain one field of each struct. An index on an expression such as
   * `transform(tags, t -> lower(t))` contains a function of each element. Returns None if no index covers a part of
   * `holds`.
   *
   * @param key returns the key of the index on an array
   */
  def indexed(key: Expression => Option[Seq[String]]): Option[(Expression, Map[ExprId, Seq[String]])] = {
    val parts = holds.collect { case part if ofElement(part) => part }.distinct
      .flatMap(part => key(arrayOf(part)).map(identity(part) -> _)).toMap
    val variables = parts.keys.map(p => p -> NamedLambdaVariable("part", p.dataType, nullable = true)).toMap
    val keys = parts.map { case (part, own) => variables(part).exprId -> own } ++ key(array).map(variable.exprId -> _)
    if (keys.isEmpty) None
    else Some((holds.transformDown { case part if ofElement(part) => variables.getOrElse(identity(part), part) }, keys))
  }

  /**
   * True for a value that is computed from the element. False for the element itself. False for predicates, because
   * `holds` can consist of thousands of predicates, and a search for an index on each predicate would be slow.
   */
  private def ofElement(e: Expression): Boolean = e match {
    case _: Predicate | _: NamedLambdaVariable => false
    case value => value.exists(isElement)
  }

  private def isElement(e: Expression): Boolean = e match {
    case v: NamedLambdaVariable => v.exprId == variable.exprId
    case _ => false
  }

  /**
   * Two parts with the same identity have the same value. The identity of a field is the field's canonical form. Any
   * other part is its own identity. The canonical form of a sum, for example, reorders the terms, which can change
   * rounding or overflow.
   */
  private def identity(part: Expression): Expression = part match {
    case field: GetStructField => field.canonicalized
    case other => other
  }

  /** An array with the value of `part` for each element of the predicate's array. */
  private def arrayOf(part: Expression): Expression =
    fieldsOf(part).getOrElse(ArrayTransform(array, LambdaFunction(part, Seq(variable))))

  /** An array with the value of a field for each struct in the predicate's array. */
  private def fieldsOf(e: Expression): Option[Expression] = e match {
    case v if isElement(v) => Some(array)
    case g: GetStructField => fieldsOf(g.child).map { structs =>
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
