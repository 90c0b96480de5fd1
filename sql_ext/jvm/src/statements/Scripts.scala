package org.apache.spark.sql.sieve.statements

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Locale
import java.util.regex.Pattern

/**
 * SIEVE statements in a `BEGIN .. END` block. Spark's grammar parses a block as a whole. So each SIEVE
 * statement becomes an `EXECUTE IMMEDIATE`. When the block reaches it, Spark passes its text to the parser of
 * the session.
 */
object Scripts {
  private val block = Pattern.compile(s"(?i)${StatementOwnership.gap}*+(?:${StatementOwnership.name}\\s*+:\\s*+)?BEGIN\\b")
  private val token =
    Pattern.compile(s"(?s)(${StatementOwnership.gap}++)|${StatementOwnership.string}|${StatementOwnership.name}|.")
  private val before = Set(";", "BEGIN", "ATOMIC", "THEN", "ELSE", "DO", "LOOP", "REPEAT")

  def isBlock(sql: String): Boolean = block.matcher(sql).lookingAt

  /**
   * The block in which each statement for which `owns` is true is replaced by `text` of it. All other text
   * keeps its line numbers.
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
   * A string literal with as many lines. It has no quotes or backslashes, whose meaning depends on the
   * session's settings.
   */
  private def quoted(text: String): String =
    if (!text.exists("'\\".contains(_))) s"'$text'"
    else s"CAST(X'${text.getBytes(UTF_8).map("%02X".format(_)).mkString}'${text.filter(_ == '\n')} AS STRING)"

  /** Where a statement ends: before its semicolon. */
  private def ending(sql: String, from: Int): Int = {
    val matcher = token.matcher(sql)
    var at = from
    while (at < sql.length && matcher.region(at, sql.length).lookingAt && matcher.group != ";") at = matcher.end
    at
  }
}
