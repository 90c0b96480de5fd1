package org.apache.spark.sql.sieve.predicate

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Rewrites predicates on the first characters of a text, `substr(c, 1, n)` or `left(c, n)`, as predicates on the whole
 * text. Each row that satisfies a predicate also satisfies the rewritten predicate. Spark compares texts by their
 * bytes.
 */
private object FirstCharacters {
  def of(e: Expression): Option[Expression] = e match {
    case EqualTo(Prefix(c, n), TextLiteral(v)) => Some(equal(c, n, v))
    case EqualNullSafe(Prefix(c, n), TextLiteral(v)) => Some(equal(c, n, v))
    case EqualTo(TextLiteral(v), Prefix(c, n)) => Some(equal(c, n, v))
    case EqualNullSafe(TextLiteral(v), Prefix(c, n)) => Some(equal(c, n, v))
    case In(Prefix(c, n), list) => among(c, n, list.map { case TextLiteral(v) => Some(v); case _ => None })
    case InSet(Prefix(c, n), set) =>
      among(c, n, set.toSeq.filter(_ != null).map { case v: UTF8String => Some(v); case _ => None })
    case StartsWith(Prefix(c, n), TextLiteral(v)) => Some(starting(c, n, v))
    case Like(Prefix(c, n), TextLiteral(v), escape) => fixed(v, escape).map(starting(c, n, _))
    case GreaterThan(Prefix(c, n), v @ TextLiteral(text)) => Some(
      if (text.numChars < n) GreaterThan(c, v)
      else after(text.substring(0, n)).fold[Expression](IsNotNull(c))(next => GreaterThanOrEqual(c, literal(next))))
    case GreaterThanOrEqual(Prefix(c, _), v @ TextLiteral(_)) => Some(GreaterThanOrEqual(c, v))
    case LessThan(Prefix(c, n), v @ TextLiteral(text)) => Some(if (text.numChars <= n) LessThan(c, v) else below(c, n, text))
    case LessThanOrEqual(Prefix(c, n), v @ TextLiteral(text)) =>
      Some(if (text.numChars < n) LessThanOrEqual(c, v) else below(c, n, text))
    case GreaterThan(v @ TextLiteral(_), p @ Prefix(_, _)) => of(LessThan(p, v))
    case GreaterThanOrEqual(v @ TextLiteral(_), p @ Prefix(_, _)) => of(LessThanOrEqual(p, v))
    case LessThan(v @ TextLiteral(_), p @ Prefix(_, _)) => of(GreaterThan(p, v))
    case LessThanOrEqual(v @ TextLiteral(_), p @ Prefix(_, _)) => of(GreaterThanOrEqual(p, v))
    case RLike(c, TextLiteral(v)) => anchored(v.toString).map(prefix => StartsWith(c, literal(UTF8String.fromString(prefix))))
    case _ => None
  }

  /**
   * The text before the first wildcard of a LIKE pattern. LIKE decodes each sequence of bytes that is not valid UTF-8
   * as the replacement character, so this character also ends the text.
   */
  def fixed(pattern: UTF8String, escape: Char): Option[UTF8String] =
    Some(pattern.toString.takeWhile(c => c != '%' && c != '_' && c != escape && c != '\uFFFD'))
      .filter(_.nonEmpty).map(UTF8String.fromString)

  /** The least text that is greater than every text with this prefix. Returns None if no text is greater. */
  def after(prefix: UTF8String): Option[UTF8String] = {
    val bytes = prefix.getBytes.reverse.dropWhile(_ == -1).reverse
    if (bytes.isEmpty) None else Some(UTF8String.fromBytes(bytes.init :+ (bytes.last + 1).toByte))
  }

  /**
   * Matches the first `n` characters of a text, and returns the text and `n`. Columns of type CHAR or with a collation
   * do not match.
   */
  private object Prefix {
    def unapply(e: Expression): Option[(Expression, Int)] = e match {
      case Substring(c, Literal(0 | 1, _), Literal(n: Int, _)) if c.dataType == StringType && !c.foldable => Some((c, n.max(0)))
      case _ => None
    }
  }

  private def literal(v: UTF8String): Literal = Literal(v, StringType)

  /**
   * The condition that the first `n` characters of `c` equal `v`. If `v` has fewer than `n` characters, `v` must be the
   * whole text.
   */
  private def equal(c: Expression, n: Int, v: UTF8String): Expression =
    if (v.numChars > n) Literal.FalseLiteral
    else if (v.numChars < n) EqualTo(c, literal(v))
    else starting(c, n, v)

  private def starting(c: Expression, n: Int, v: UTF8String): Expression =
    if (v.numChars > n) Literal.FalseLiteral
    else if (v.numBytes == 0) IsNotNull(c)
    else StartsWith(c, literal(v))

  private def among(c: Expression, n: Int, values: Seq[Option[UTF8String]]): Option[Expression] =
    if (values.contains(None) || values.isEmpty) None
    else {
      val (whole, prefixes) = values.flatten.filter(_.numChars <= n).partition(_.numChars < n)
      val parts = prefixes.map(starting(c, n, _)) ++ Some(In(c, whole.map(literal))).filter(_ => whole.nonEmpty)
      Some(parts.reduceOption(Or(_, _)).getOrElse(Literal.FalseLiteral))
    }

  /**
   * The condition that the first `n` characters of `c` are at most `v`: `c` is less than `v`, or begins with the first
   * `n` characters of `v`.
   */
  private def below(c: Expression, n: Int, v: UTF8String): Expression = {
    val first = v.substring(0, n)
    Or(LessThanOrEqual(c, literal(first)), starting(c, n, first))
  }

  /**
   * The text with which each match of a regular expression begins, if matches begin at the start of the value. The text
   * contains only letters, digits and some punctuation. If a quantifier makes the last character optional, the text
   * ends before this character. Returns None if the regular expression has an alternative (`|`), which can begin with
   * other text.
   */
  private def anchored(pattern: String): Option[String] = {
    val text = pattern.drop(1).takeWhile(c => c < 128 && (Character.isLetterOrDigit(c) || "-_/:@ ".indexOf(c) >= 0))
    val isOptional = pattern.drop(1 + text.length).headOption.exists("?*{".indexOf(_) >= 0)
    Some(if (isOptional) text.dropRight(1) else text)
      .filter(t => pattern.startsWith("^") && pattern.indexOf('|') < 0 && t.nonEmpty)
  }
}

/** A constant text without a collation. */
private object TextLiteral {
  def unapply(e: Expression): Option[UTF8String] = e match {
    case Literal(v: UTF8String, StringType) => Some(v)
    case _ => None
  }
}
