package org.apache.spark.sql.sieve.statements

import java.util.Locale
import scala.util.Try
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.sieve.base.{Compat, TableProperties}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Decides which statements are SIEVE statements. This class examines only keywords at fixed positions, so no literal or
 * name turns another product's statement into a SIEVE statement. Other products also have the statements CREATE INDEX,
 * DROP INDEX and CALL. Sieve runs these statements only if the index or procedure belongs to Sieve.
 */
class StatementOwnership(session: Compat.Session, delegate: ParserInterface) {
  def owns(sql: String): Boolean = StatementOwnership.owns(sql) ||
    StatementOwnership.calls(sql) && !hasCatalog || StatementOwnership.indexForm(sql).exists(isOurs)

  /** True if the user has a catalog named `sieve`, so that `CALL sieve.name` calls a procedure of this catalog. */
  private def hasCatalog: Boolean =
    session.sessionState.conf.getAllConfs.keys.exists(_.equalsIgnoreCase("spark.sql.catalog.sieve"))

  private def isOurs(form: StatementOwnership.IndexForm): Boolean = form.isUsingSieve || Try {
    val index = delegate.parseMultipartIdentifier(form.index).head.toLowerCase(Locale.ROOT)
    Tables.find(session, delegate.parseMultipartIdentifier(form.table))
      .exists(_.properties.contains(TableProperties.registrations + index))
  }.getOrElse(false)
}

object StatementOwnership {
  /**
   * A CREATE INDEX or DROP INDEX statement without the keyword SIEVE before INDEX. `index` and `table` are names from
   * the statement.
   */
  final case class IndexForm(index: String, table: String, isUsingSieve: Boolean)

  // All quantifiers are possessive. If Java backtracked, it would need a stack frame for each blank.
  val gap: String = """(?:\s++|--[^\n]*+(?:\n|$)|/\*(?s:.*?)\*/)"""
  val name: String = """(?:`(?:[^`]|``)*+`|[\p{L}\p{N}_]++)"""
  /** Matches a string literal. A literal with the prefix R has no escapes. */
  val string: String = """(?:(?<![\p{L}\p{N}_])[rR](?:'[^']*+'|"[^"]*+")|'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")"""
  // A table can have the name "sieve", and a column the name "index". So after a verb that can precede a name, the word
  // SIEVE alone does not make a SIEVE statement: further text must follow.
  private val kinds = Seq("CREATE|DROP|ALTER|SHOW|EXPLAIN|CHECK|ESTIMATE|ADVISE", "DESCRIBE|DESC",
    "OPTIMIZE|VACUUM", "REFRESH")
  private val Seq(plain, ofColumns, ofTables, ofPaths) = kinds
  private val verbs = kinds.flatMap(_.split('|'))
  private val objects = Seq("INDEX", "INDEXES", "VERSIONS")
  private val replace = s"(?:OR$gap++REPLACE$gap++)?"
  private val ours = (s"(?i)^$gap*+(?:(?:$plain)$gap++${replace}SIEVE\\b" +
    s"|(?:$ofColumns)$gap++SIEVE$gap++INDEX$gap++[^;]" +
    s"|(?:$ofTables)$gap++SIEVE$gap++INDEX(?:ES)?\\b" +
    s"|(?:$ofPaths)$gap++SIEVE$gap++[^;])").r
  private val call = s"(?i)^$gap*+CALL$gap++(?:SIEVE|`SIEVE`)$gap*+\\.".r
  private val index = (s"(?i)^$gap*+(CREATE|DROP)$gap++INDEX$gap++" +
    s"(?:IF$gap++(?:NOT$gap++)?EXISTS\\b$gap*+)?($name)$gap*+ON\\b$gap*+(?:TABLE\\b$gap*+)?" +
    s"($name(?:$gap*+\\.$gap*+$name)*+)$gap*+(?:USING\\b$gap*+($name))?").r
  private val words = s"(?i)^$gap*+([A-Z]++)$gap++$replace([A-Z]++)(?:$gap++([A-Z]++))?".r

  def owns(sql: String): Boolean = ours.findFirstIn(sql).isDefined

  def calls(sql: String): Boolean = call.findFirstIn(sql).isDefined

  def indexForm(sql: String): Option[IndexForm] = index.findFirstMatchIn(sql).map { found =>
    val using = Option(found.group(4)).exists(_.equalsIgnoreCase("sieve"))
    IndexForm(found.group(2), found.group(3), using && found.group(1).equalsIgnoreCase("CREATE"))
  }

  /** True if a text that Spark cannot parse begins like a SIEVE statement with typing errors. */
  def isNear(sql: String): Boolean = words.findFirstMatchIn(sql).exists { found =>
    val verb = nearest(found.group(1), verbs)
    verb.isDefined && nearest(found.group(2), Seq("SIEVE")).isDefined &&
      (verb.contains("EXPLAIN") || nearest(found.group(3), objects).isDefined)
  }

  private def nearest(word: String, of: Seq[String]): Option[String] = Option(word).flatMap { typed =>
    val upper = UTF8String.fromString(typed.toUpperCase(Locale.ROOT))
    val (distance, found) = of.map(o => upper.levenshteinDistance(UTF8String.fromString(o)) -> o).min
    if (distance <= 2 && 2 * distance < found.length) Some(found) else None
  }
}
