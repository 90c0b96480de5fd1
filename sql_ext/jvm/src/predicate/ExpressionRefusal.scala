package org.apache.spark.sql.sieve.predicate

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

/** Decides which expressions cannot have an index. */
private object ExpressionRefusal {
  /**
   * The reason why an expression cannot have an index, for example because its value can change while the row stays the
   * same.
   */
  def of(e: Expression): Option[String] = e match {
    case _ if e.references.isEmpty => Some("it has no column of the table")
    case _ if !e.deterministic => Some("its value changes from query to query")
    case _: And => Some("queries filter by each part of an AND; index the parts")
    case _ => e.collectFirst {
      case _: SubqueryExpression | _: PlanExpression[_] => "it has a subquery"
      // Spark declares this function deterministic, but uses a random initialization vector in each call.
      case _: AesEncrypt => "its value changes from query to query"
      case _: UserDefinedExpression | _: ApplyFunctionExpression => "it calls a user-defined function, whose meaning can change"
      case other: LeafExpression if !isFixed(other) => s"the value of ${other.prettyName} depends on the session or the time"
      case call: objects.StaticInvoke if !isSparks(call.staticObject) => s"it calls ${call.staticObject.getName}, whose meaning can change"
      case Literal(own: AnyRef, _: ObjectType) if !isSparks(own.getClass) => s"it calls ${own.getClass.getName}, whose meaning can change"
      case other if !isSparks(other.getClass) => s"${other.prettyName} is not a function of Spark"
      case other if isCollated(other.dataType) => "it has text with a collation"
    }
  }

  /**
   * The reason why the columns of an expression in normal form rule out an index.
   *
   * @param isColumn returns true for the path of a column whose name in the files is known
   * @param declared returns the type that the table declares for a column; None if Spark reads the column's own type
   */
  def ofColumns(
      normal: Expression, isColumn: Seq[String] => Boolean, declared: String => Option[DataType]): Option[String] = normal.collectFirst {
    case ColumnValue(path, _) if declared(path.head).exists(within(_, path.tail).existsRecursively(_.isInstanceOf[CharType])) =>
      s"${path.mkString(".")} is a CHAR, which Spark pads with blanks"
    case ColumnValue(path, kind) if hasNestedStruct(kind) => s"${path.mkString(".")} has structs in an array or map"
    case ColumnValue(path, _) if !isColumn(path) =>
      s"${path.mkString(".")} is a field of structs in an array, which can have other names in the files"
  }

  /** The type of the field with this path. A path contains no step for the elements of an array. */
  private def within(of: DataType, path: Seq[String]): DataType = (of, path) match {
    case (struct: StructType, name +: rest) => struct.find(_.name.equalsIgnoreCase(name)).fold(of)(f => within(f.dataType, rest))
    case (ArrayType(element, _), _ +: _) => within(element, path)
    case _ => of
  }

  /**
   * True if an array or map contains structs. An array or map of structs cannot have an index for two reasons. A scan
   * may leave out fields of the structs. The key of an expression cannot contain the names of the fields in the files.
   */
  private def hasNestedStruct(of: DataType): Boolean = of.existsRecursively {
    case ArrayType(element, _) => element.existsRecursively(_.isInstanceOf[StructType])
    case MapType(key, value, _) => Seq(key, value).exists(_.existsRecursively(_.isInstanceOf[StructType]))
    case _ => false
  }

  private def isFixed(leaf: Expression): Boolean = leaf match {
    case _: Literal | _: Attribute | _: NamedLambdaVariable => true
    // This class refers to a subexpression that Spark computes once and uses several times.
    case other => other.getClass.getSimpleName == "CommonExpressionRef"
  }
  private def isSparks(of: Class[_]): Boolean = of.getName.startsWith("org.apache.spark.sql.catalyst.")
  private def isCollated(of: DataType): Boolean = of.existsRecursively {
    case text: StringType => text != StringType
    case _ => false
  }
}
