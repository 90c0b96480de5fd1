package org.apache.spark.sql.sieve.predicate

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.types._

/**
 * Several columns with one common index. The key of a row is a hash of the values of all columns. So the index serves
 * only queries that give a value for each column. A row with NULL in one of the columns has no key, because NULL equals
 * nothing.
 */
final case class Tuple(key: Seq[String], columns: Seq[ColumnValue]) {
  /**
   * The key of rows with these values, one value for each column. Returns None if a value is NULL or has another type
   * than its column.
   */
  def keyOf(values: Seq[Literal]): Option[Any] =
    if (values.zip(columns).forall { case (v, c) => Tuple.isValueOf(v, c.dataType) }) Some(Tuple.hash(values).eval()) else None
}

object Tuple {
  private val most = 4
  private val seed = 42L

  /** The columns of a tuple; empty for an expression that is not a tuple. */
  def columns(e: Expression): Seq[Expression] = e match {
    case CreateNamedStruct(parts) => values(parts)
    case _ => Nil
  }

  /**
   * The expression of a row's key. The key of a struct of columns, such as `(tenant, id)`, is a hash; any other
   * expression is its own key.
   */
  def key(e: Expression): Expression = e match {
    case CreateNamedStruct(parts) =>
      val columns = values(parts)
      If(columns.map(IsNull(_): Expression).reduce(Or), Literal(null, LongType), hash(columns))
    case other => other
  }

  /** The columns of the tuple with this key. */
  def hashed(key: Expression): Seq[Expression] = key match {
    case If(_, _, XxHash64(columns, _)) => columns
    case _ => Nil
  }

  /** The SQL of a key as users write it, such as `(a, b)` for a tuple. */
  def sql(key: Expression): String = key match {
    case tuple if hashed(tuple).nonEmpty => hashed(tuple).map(_.sql).mkString("(", ", ", ")")
    case other => other.sql
  }

  /** The values of a struct's fields. */
  def values(parts: Seq[Expression]): Seq[Expression] = parts.grouped(2).map(_.last).toSeq

  /** Replaces the field names of a parsed tuple by numbers, because Spark derives these names from the columns. */
  def unnamed(parsed: Expression): Expression = parsed match {
    case CreateNamedStruct(parts) =>
      CreateNamedStruct(values(parts).zipWithIndex.flatMap { case (value, at) => Seq(Literal(s"$at"), value) })
    case other => other
  }

  /**
   * The reason why a struct cannot be the key of an index. Returns None for any other expression.
   *
   * @param parsed the expression as Spark parses it
   */
  def refusal(parsed: Expression, e: Expression): Option[String] = e match {
    case _: CreateNamedStruct if !parsed.isInstanceOf[CreateNamedStruct] => Some("write the columns of a tuple as (a, b)")
    case CreateNamedStruct(parts) =>
      val columns = values(parts)
      if (!isCount(columns.size)) Some(s"a tuple has 2 to $most columns")
      else if (!columns.forall(isColumn)) Some("a tuple has columns; index the expression in it by itself")
      else columns.find(c => !isHashed(c.dataType)).map(c => s"a column of type ${c.dataType.sql} cannot be part of a tuple")
    case _ => None
  }

  /** True if these columns can have an index on their tuple. */
  def canHave(columns: Seq[ColumnValue]): Boolean = isCount(columns.size) && columns.forall(c => isHashed(c.dataType))

  private def isCount(columns: Int): Boolean = 2 <= columns && columns <= most

  /** True if a literal has the column's exact type. The hashes of equal decimals with different scales differ. */
  private def isValueOf(literal: Literal, kind: DataType): Boolean = (literal.value, kind) match {
    case (null, _) => false
    case (d: Decimal, t: DecimalType) => literal.dataType == t && d.scale == t.scale
    case _ => literal.dataType == kind
  }

  private def hash(values: Seq[Expression]): XxHash64 = XxHash64(values, seed)

  private def isColumn(e: Expression): Boolean = e match {
    case _: Attribute => true
    case g: GetStructField => isColumn(g.child)
    case _ => false
  }

  /**
   * True if equal values of a type have equal hashes. Floats are excluded, because equal floats can have different
   * bits.
   */
  private def isHashed(of: DataType): Boolean = of match {
    case BooleanType | DateType | TimestampType | TimestampNTZType | BinaryType | StringType => true
    case _: IntegralType | _: DecimalType => true
    case _ => false
  }
}
