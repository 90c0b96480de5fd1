package org.apache.spark.sql.sieve.statements

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Locale
import java.util.regex.Pattern

/**
 * Handles SIEVE statements in a `BEGIN .. END` block. Spark parses a whole block with its own grammar. So this object
 * replaces each SIEVE statement by an `EXECUTE IMMEDIATE` statement. When the block runs EXECUTE IMMEDIATE, Spark
 * passes the text of the SIEVE statement to the session's parser.
 */
object Scripts {
  private val block = Pattern.compile(s"(?i)${StatementOwnership.gap}*+(?:${StatementOwnership.name}\\s*+:\\s*+)?BEGIN\\b")
  private val token =
    Pattern.compile(s"(?s)(${StatementOwnership.gap}++)|${StatementOwnership.string}|${StatementOwnership.name}|.")
  private val before = Set(";", "BEGIN", "ATOMIC", "THEN", "ELSE", "DO", "LOOP", "REPEAT")

  def isBlock(sql: String): Boolean = block.matcher(sql).lookingAt

  /**
   * In a block, replaces each statement for which `owns` returns true by EXECUTE IMMEDIATE. EXECUTE IMMEDIATE passes
   * the result of `text` to Spark's parser. All other text keeps its line numbers.
   */
  def handedOn(sql: String, owns: String => Boolean, text: String => String): String = {
    val (out, matcher) = (new StringBuilder, token.matcher(sql))
    var (at, starts) = (0, false)
    while (at < sql.length && matcher.region(at, sql.length).lookingAt) {
      val isGap = matcher.group(1) != null
      val end = if (starts && !isGap) ending(sql, at) else at
      if (end > at && owns(sql.substring(at, end))) {
        out ++= s"EXECUTE IMMEDIATE ${quoted(text(sql.substring(at, end)))}"
        at = end
        starts = false
      } else {
        out ++= matcher.group
        at = matcher.end
        if (!isGap) starts = before(matcher.group.toUpperCase(Locale.ROOT))
      }
    }
    out.toString
  }

  /**
   * Returns a string literal that spans as many lines as the text. The meaning of quotes and backslashes depends on the
   * session's settings. So if the text contains quotes or backslashes, the literal encodes the text in hexadecimal
   * form.
   */
  private def quoted(text: String): String =
    if (!text.exists("'\\".contains(_))) s"'$text'"
    else s"CAST(X'${text.getBytes(UTF_8).map("%02X".format(_)).mkString}'${text.filter(_ == '\n')} AS STRING)"

  /** The position before the semicolon of the statement that begins at `from`. */
  private def ending(sql: String, from: Int): Int = {
    val matcher = token.matcher(sql)
    var at = from
    while (at < sql.length && matcher.region(at, sql.length).lookingAt && matcher.group != ";") at = matcher.end
    at
  }
}
