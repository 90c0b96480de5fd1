package org.apache.spark.sql.sieve.predicate

import org.apache.spark.sql.types._

/**
 * The kinds of indexes that can have any number of keys for each row. An index with several keys per row only tells
 * which rows may have a key. The index cannot evaluate a negated predicate, because a row can also have other keys.
 */
object ManyKeys {
  /** The keys of an array are its non-NULL elements. */
  val elements = "elements"
  /** The keys of a text are all sequences of `Grams.bytes` adjacent bytes. */
  val substring = "substring"
  val kinds: Set[String] = Set(elements, substring)

  /** The kind of index, as named in the index's key. Returns None if the key names no kind. */
  def kind(key: Seq[String]): Option[String] = key.lift(2)

  /** The default kind of an index on values of this type. Returns None if the index has one key for each row. */
  def of(t: DataType): Option[String] = t match {
    case _: ArrayType => Some(elements)
    case _ => None
  }

  def keyType(kind: Option[String], value: DataType): DataType = value match {
    case ArrayType(element, _) if kind.contains(elements) => element
    case _ if kind.contains(substring) => IntegerType
    case other => other
  }

  /** The reason why an index of this kind cannot contain values of this type. */
  def refusal(kind: Option[String], value: DataType): Option[String] = (kind, value) match {
    case (None, _) | (Some(`elements`), _: ArrayType) | (Some(`substring`), StringType) => None
    case (Some(other), _) => Some(s"its type is ${value.sql}, and kind = '$other' needs ${if (other == elements) "an array" else "a STRING"}")
  }
}
