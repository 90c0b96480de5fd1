package org.apache.spark.sql.sieve.predicate

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.sieve.base.Variants
import org.apache.spark.sql.types._

/**
 * For advice on indexes, finds the expressions in a scan's filters that have an index or could have an index. If a
 * predicate is on a column, or on an order-preserving function of a column, this class proposes the column itself.
 *
 * @param indexed the expressions that have an index
 */
final class ProposedExpressions(indexed: IndexedExpressions) extends IndexedExpressions(Nil) {
  override def key(e: Expression, path: Expression => Option[Seq[String]]): Option[(Seq[String], DataType)] =
    indexed.key(e, path).orElse {
      val whole = Variants.withoutPushed(e)
      if (ProposedExpressions.isWorthwhile(whole, path)) Some(IndexedExpression.key(ProposedExpressions.sql(whole)) -> e.dataType) else None
    }

  override def key(kind: String, e: Expression, path: Expression => Option[Seq[String]]): Option[Seq[String]] =
    indexed.key(kind, e, path).orElse(
      if (ProposedExpressions.canHave(kind, e, path)) Some(IndexedExpression.key(ProposedExpressions.column(e, path), Some(kind)))
      else None)
  override def areProposed: Boolean = true
  override def haveRoot(e: Expression): Boolean = indexed.haveRoot(e)
  override def over(names: Seq[String]): Seq[String] = indexed.over(names)
  override val tuples: Seq[Tuple] = indexed.tuples
  override def tuple(columns: Seq[ColumnValue]): Option[Tuple] =
    indexed.tuple(columns).orElse(if (Tuple.canHave(columns)) Some(ProposedExpressions.tuple(columns)) else None)
}

private object ProposedExpressions {
  /** The text arguments of a function that are names or patterns. These arguments cannot be values of a row. */
  private def namesBy(e: Expression): Seq[Expression] = e match {
    case GetJsonObject(_, path) => Seq(path)
    case of @ (_: GetMapValue | _: ElementAt) => Seq(of.children(1))
    case DateFormatClass(_, pattern, _) => Seq(pattern)
    case TruncDate(_, unit) => Seq(unit)
    case TruncTimestamp(unit, _, _) => Seq(unit)
    case other if other.getClass.getSimpleName == "VariantGet" => Seq(other.children(1))
    case _ => Nil
  }

  private def isWorthwhile(e: Expression, path: Expression => Option[Seq[String]]): Boolean =
    isScalar(e.dataType) && !e.isInstanceOf[Literal] && path(e).isEmpty && MonotoneFunction.of(e).isEmpty && isOfColumns(e, path)

  /** True if advice can propose an index of this kind on an expression. */
  private def canHave(kind: String, e: Expression, path: Expression => Option[Seq[String]]): Boolean = e.dataType match {
    case ArrayType(element, _) => kind == ManyKeys.elements && isScalar(element) && isOfColumns(e, path)
    case StringType => kind == ManyKeys.substring && isOfColumns(e, path)
    case _ => false
  }

  /**
   * True if the expression can have an index, and contains no text that could be a value of a row. False for lambda
   * functions, because Catalyst cannot write them as SQL.
   */
  private def isOfColumns(e: Expression, path: Expression => Option[Seq[String]]): Boolean =
    !e.exists {
      case _: Predicate | _: LambdaFunction | _: NamedLambdaVariable => true
      case _ => false
    } && !hasValue(e) && ExpressionRefusal.of(e).isEmpty &&
      ExpressionRefusal.ofColumns(IndexedExpression.normal(e, path), _ => true, _ => None).isEmpty && e.references.forall(path(_).nonEmpty)

  private def isScalar(of: DataType): Boolean = of match {
    case BooleanType | BinaryType => false
    case other => other.isInstanceOf[AtomicType]
  }

  /**
   * True if the SQL of an expression contains a text that could be a value of a row. Records of scans must not contain
   * values of rows.
   */
  private def hasValue(e: Expression): Boolean = {
    val names = namesBy(e)
    e.children.exists {
      case Literal(_, _: NumericType | BooleanType) => false
      case literal: Literal => !names.exists(_ eq literal)
      case child => hasValue(child)
    }
  }

  private def tuple(columns: Seq[ColumnValue]): Tuple =
    Tuple(IndexedExpression.key(columns.map(_.path.map(quoteIfNeeded).mkString(".")).mkString("(", ", ", ")")), columns)

  private def column(e: Expression, path: Expression => Option[Seq[String]]): String =
    path(e).orElse(ColumnPath.inArray(e, path)).fold(sql(e))(_.map(quoteIfNeeded).mkString("."))

  /**
   * The SQL of an expression. Catalyst quotes each name of a struct's field, but the key of an index contains quotes only
   * around names that need quotes. So attributes with the same names replace the fields.
   */
  private def sql(e: Expression): String = Variants.withTypes(e).transformDown {
    case a: AttributeReference if a.qualifier.isEmpty => a
    case named @ (_: AttributeReference | _: GetStructField | _: GetArrayStructFields) if names(named).nonEmpty =>
      val path = names(named).get
      AttributeReference(path.last, named.dataType)(qualifier = path.init)
  }.sql

  private def names(e: Expression): Option[Seq[String]] = {
    def plain(e: Expression) = ColumnPath.of(e, a => Some(a.name))
    plain(e).orElse(ColumnPath.inArray(e, plain))
  }
}
