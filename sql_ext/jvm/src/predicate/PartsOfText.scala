package org.apache.spark.sql.sieve.predicate

import java.nio.ByteBuffer
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * A predicate that is TRUE only for texts that contain certain parts, such as `c LIKE '%error%code%'`.
 *
 * @param parts   the parts, as bytes
 * @param isWhole true if the only part is the whole text
 */
private final case class PartsOfText(text: Expression, parts: Seq[Array[Byte]], isWhole: Boolean = false) {
  /** Keys in an index on substrings. A text satisfies the predicate only if it has all these keys. */
  def grams: Seq[Int] = {
    val all = parts.filter(_.length >= Grams.bytes).flatMap(_.sliding(Grams.bytes)).map(ByteBuffer.wrap(_).getInt).distinct
    // Adjacent keys share bytes, so for long parts, a sample of the keys selects nearly the same files as all keys.
    sample(all)
  }

  /** The hashes of the long grams in the parts. The signature of a location with such a text has all these bits. */
  def signature: Seq[Long] =
    sample(parts.filter(_.length >= Grams.longBytes).flatMap(_.sliding(Grams.longBytes)).map(Grams.hash).distinct)
      .map(Integer.toUnsignedLong)

  private def sample[A](all: Seq[A]): Seq[A] = {
    val step = (all.size + Grams.most - 1) / Grams.most
    if (step < 2) all else all.grouped(step).map(_.head).toSeq
  }
}

object Grams {
  /** The length of a key in bytes. Python code calls the same number `GRAM_BYTES`. */
  val bytes = 4
  /** The length of a long gram in bytes. Python code calls the same number `LONG_GRAM_BYTES`. */
  val longBytes = 8
  val most = 40

  /** The hash of a long gram, whose bytes are the big-endian number `gram`. */
  def hash(gram: Long): Int = ((gram * 0x9E3779B97F4A7C15L) >>> 32).toInt
  def hash(gram: Array[Byte]): Int = hash(gram.foldLeft(0L)((number, byte) => number << 8 | byte & 0xff))

  /**
   * The reason that a scan reports if no part of a predicate is long enough for a key. The reason contains no constants
   * of the query, because the driver has a counter for each reason.
   */
  def tooShort(function: String): String = s"$function of less than $bytes bytes"
}

private object PartsOfText {
  def of(e: Expression, negated: Boolean): Option[PartsOfText] = e match {
    case Contains(text, TextLiteral(part)) if !negated => one(text, part)
    case StartsWith(text, TextLiteral(part)) if !negated => one(text, part)
    case EndsWith(text, TextLiteral(part)) if !negated => one(text, part)
    case Equality(text, TextLiteral(whole)) if !negated => one(text, whole).map(_.copy(isWhole = true))
    case Equality(TextLiteral(whole), text) if !negated => one(text, whole).map(_.copy(isWhole = true))
    case Like(text, TextLiteral(pattern), escape) if !negated => literals(pattern.toString, escape).map(PartsOfText(text, _))
    // If the text does not contain the part, the position is 0.
    case GreaterThan(Position(text, part), Literal(k: Int, _)) if !negated && k >= 0 => one(text, part)
    case GreaterThanOrEqual(Position(text, part), Literal(k: Int, _)) if !negated && k > 0 => one(text, part)
    case EqualTo(Position(text, part), Literal(k: Int, _)) if !negated && k > 0 => one(text, part)
    case LessThan(Literal(k: Int, _), Position(text, part)) if !negated && k >= 0 => one(text, part)
    case LessThanOrEqual(Literal(k: Int, _), Position(text, part)) if !negated && k > 0 => one(text, part)
    case EqualTo(Literal(k: Int, _), Position(text, part)) if !negated && k > 0 => one(text, part)
    case EqualTo(Position(text, part), Literal(0, _)) if negated => one(text, part)
    case EqualTo(Literal(0, _), Position(text, part)) if negated => one(text, part)
    case _ => None
  }

  private def one(text: Expression, part: UTF8String): Option[PartsOfText] = Some(PartsOfText(text, Seq(part.getBytes)))

  /**
   * The texts between the wildcards of a LIKE pattern. Returns None for a pattern that Spark rejects. LIKE decodes each
   * sequence of bytes that is not valid UTF-8 as the replacement character, so this character also separates texts.
   */
  private def literals(pattern: String, escape: Char): Option[Seq[Array[Byte]]] = {
    val parts = Seq.newBuilder[String]
    val part = new StringBuilder
    def end(): Unit = { parts += part.result(); part.clear() }
    var at = 0
    if (escape == '\uFFFD') return None
    while (at < pattern.length) {
      pattern(at) match {
        case c if c == escape =>
          at += 1
          if (at == pattern.length || !Seq('_', '%', escape).contains(pattern(at))) return None
          part += pattern(at)
        case '_' | '%' | '\uFFFD' => end()
        case c => part += c
      }
      at += 1
    }
    end()
    Some(parts.result().filter(_.nonEmpty).map(_.getBytes("UTF-8")))
  }

  /** Matches an expression that returns the position of a part in a text. */
  private object Position {
    def unapply(e: Expression): Option[(Expression, UTF8String)] = e match {
      case StringInstr(text, TextLiteral(part)) => Some((text, part))
      case StringLocate(TextLiteral(part), text, _) => Some((text, part))
      case _ => None
    }
  }
}
