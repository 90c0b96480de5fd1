package org.apache.spark.sql.sieve.ask

import org.apache.spark.sql.types._

/**
 * The kinds of indexes that have any number of keys for each row. Such an index shows only that a row has a key: it
 * proves nothing about a negation, because a row can also have other keys.
 */
object ManyKeys {
  /** The keys of an array are its elements that are not NULL. */
  val elements = "elements"
  /** The keys of a text are the sequences of `Grams.bytes` bytes in it. */
  val substring = "substring"
  val kinds: Set[String] = Set(elements, substring)

  /** The kind in the path of a key. */
  def kind(key: Seq[String]): Option[String] = key.lift(2)

  /** The kind of an index on values of a type, if the user has named none. */
  def of(t: DataType): Option[String] = t match {
    case _: ArrayType => Some(elements)
    case _ => None
  }

  def keyType(kind: Option[String], value: DataType): DataType = value match {
    case ArrayType(element, _) if kind.contains(elements) => element
    case _ if kind.contains(substring) => IntegerType
    case other => other
  }

  /** The reason why values of a type have no keys of a kind. */
  def refusal(kind: Option[String], value: DataType): Option[String] = (kind, value) match {
    case (None, _) | (Some(`elements`), _: ArrayType) | (Some(`substring`), StringType) => None
    case (Some(other), _) => Some(s"its type is ${value.sql}, and kind = '$other' needs ${if (other == elements) "an array" else "a STRING"}")
  }
}
