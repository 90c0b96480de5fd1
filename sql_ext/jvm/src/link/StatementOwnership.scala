package org.apache.spark.sql.sieve

import java.util.Locale

import scala.util.Try

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.unsafe.types.UTF8String

/**
 * Which statements are Sieve's. Decided by the position of keywords, so that no literal or name can
 * claim one; of forms that others have as well, by whether their object is Sieve's.
 */
class Claims(session: Compat.Session, delegate: ParserInterface) {
  def owns(sql: String): Boolean =
    Claims.owns(sql) || Claims.calls(sql) && !hasCatalog || Claims.indexForm(sql).exists(isOurs)

  /** Where there is a catalog of the name, its procedures are what is called. */
  private def hasCatalog: Boolean =
    session.sessionState.conf.getAllConfs.keys.exists(_.equalsIgnoreCase("spark.sql.catalog.sieve"))

  private def isOurs(form: Claims.IndexForm): Boolean = form.isUsingSieve || Try {
    def parts(name: String) = delegate.parseMultipartIdentifier(name)
    val catalog = session.sessionState.catalog
    val table = parts(form.table) match {
      case Seq(t) if isSessionCatalog => TableIdentifier(t, Some(catalog.getCurrentDatabase))
      case Seq(d, t) if isSessionCatalog => TableIdentifier(t, Some(d))
      case Seq(c, d, t) if c.equalsIgnoreCase("spark_catalog") => TableIdentifier(t, Some(d))
    }
    val key = Registry.prefix + parts(form.index).head.toLowerCase(Locale.ROOT)
    catalog.getTableMetadata(table).properties.contains(key)
  }.getOrElse(false)

  private def isSessionCatalog: Boolean =
    session.sessionState.catalogManager.currentCatalog.name.equalsIgnoreCase("spark_catalog")
}

object Claims {
  /** A statement about an index that names no SIEVE before INDEX: of which index and table. */
  final case class IndexForm(index: String, table: String, isUsingSieve: Boolean)

  // Possessive throughout: Java's backtracking would take a stack frame for each blank.
  private val gap = """(?:\s++|--[^\n]*+(?:\n|$)|/\*(?s:.*?)\*/)"""
  private val name = """(?:`(?:[^`]|``)*+`|[\p{L}\p{N}_]++)"""
  private val verbs = "CREATE|DROP|ALTER|SHOW|EXPLAIN|CHECK|ESTIMATE"
  // A table may be called sieve and a column index, so verbs that take their bare names need more.
  private val verbsOfColumns = "DESCRIBE|DESC"
  private val verbsOfTables = "OPTIMIZE|VACUUM"
  private val verbsOfPaths = "REFRESH"
  private val allVerbs = s"$verbs|$verbsOfColumns|$verbsOfTables|$verbsOfPaths".split('|').toList
  private val replace = s"(?:OR$gap++REPLACE$gap++)?"
  private val ours = (s"(?i)^$gap*+(?:(?:$verbs)$gap++${replace}SIEVE\\b" +
    s"|(?:$verbsOfColumns)$gap++SIEVE$gap++INDEX$gap++[^;]" +
    s"|(?:$verbsOfTables)$gap++SIEVE$gap++INDEX(?:ES)?\\b" +
    s"|(?:$verbsOfPaths)$gap++SIEVE$gap++[^;])").r
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

  /** Whether a text that Spark cannot parse begins nearly as one of our statements. */
  def isNear(sql: String): Boolean = words.findFirstMatchIn(sql).exists { found =>
    val verb = nearest(found.group(1), allVerbs)
    verb.isDefined && nearest(found.group(2), Seq("SIEVE")).isDefined &&
      (verb.contains("EXPLAIN") || nearest(found.group(3), Seq("INDEX", "INDEXES", "VERSIONS")).isDefined)
  }

  private def nearest(word: String, of: Seq[String]): Option[String] = Option(word).flatMap { typed =>
    val upper = UTF8String.fromString(typed.toUpperCase(Locale.ROOT))
    of.map(o => upper.levenshteinDistance(UTF8String.fromString(o)) -> o).min match {
      case (distance, found) if distance <= 2 && 2 * distance < found.length => Some(found)
      case _ => None
    }
  }
}
