package org.apache.spark.sql.sieve.statements

import scala.util.Try
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.AnalysisContext
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.sieve.ask.FrontendClient
import org.apache.spark.sql.sieve.base.{Compat, SieveException}
import org.apache.spark.sql.sieve.observe.CatalogEvents
import org.apache.spark.sql.types.StringType

/**
 * A table function in FROM, whose rows are not computed yet. While Spark creates this node, Spark holds a lock on its
 * catalog. Computing the rows needs the same lock, so `FunctionRows` computes the rows later.
 */
case class FunctionCall(name: String, arguments: Seq[(String, String)]) extends LeafNode {
  override def output: Seq[Attribute] = Nil
  override lazy val resolved: Boolean = false
}

/** Replaces calls of table functions by their rows when Spark analyses a query. The front end computes the rows. */
class FunctionRows(session: SparkSession) extends Rule[LogicalPlan] {
  private def asking = session.asInstanceOf[Compat.Session]

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case FunctionCall(name, arguments) =>
      CatalogEvents.settled(asking)
      val reply = FrontendClient.ask(asking, "function", Map("name" -> name, "arguments" -> arguments.map {
        case ("table", table) => "table" -> qualified(parts(table, "a table"))
        case ("database", database) => "database" -> parts(database, "a database")
        case other => other
      }.toMap))
      val columns = SieveStatement.columns(reply)
      LocalRelation.fromExternalRows(columns, SieveStatement.rows(reply, columns))
  }

  /**
   * The full name of a table. Inside a view, this method resolves the name as Spark resolves other names in the view.
   */
  private def qualified(name: Seq[String]): Seq[String] =
    if (name.size == 1) AnalysisContext.get.catalogAndNamespace ++ name else name

  private def parts(name: String, what: String): Seq[String] =
    try asking.sessionState.sqlParser.parseMultipartIdentifier(name)
    catch { case _: ParseException => throw TableFunction.refused(s"'$name' is not the name of $what") }
}

/**
 * A table function in FROM. Its arguments are constant strings, passed by position. The arguments `table` and
 * `database` are names in SQL syntax.
 *
 * @param meaning a sentence that DESCRIBE FUNCTION shows
 * @param example a query, and one line for each row of the query's result
 */
final case class TableFunction(
    name: String, required: Seq[String], optional: Seq[String], meaning: String, example: String*) {
  private def usage = {
    val must = required.map(a => s"'$a'").mkString(", ")
    optional.foldLeft(must)((before, a) => if (before.isEmpty) s"['$a']" else s"$before [, '$a']")
  }

  def info: ExpressionInfo =
    TableFunction.info(classOf[LocalRelation], name, s"_FUNC_($usage) - $meaning", example)

  def call(arguments: Seq[Expression]): LogicalPlan = {
    val most = required.size + optional.size
    if (arguments.size < required.size || arguments.size > most) {
      val wanted = if (optional.isEmpty) s"$most" else s"${required.size} to $most"
      throw TableFunction.refused(s"$name($usage) takes $wanted arguments, not ${arguments.size}")
    }
    FunctionCall(name, (required ++ optional).zip(arguments).map { case (what, e) =>
      what -> TableFunction.constant(e).getOrElse(throw TableFunction.refused(
        s"$name($usage) takes constant strings, which ${e.sql} for '$what' is not"))
    })
  }
}

object TableFunction {
  val all: Seq[TableFunction] = Seq(
    TableFunction("sieve_indexes", Nil, Seq("database"),
      "The Sieve indexes of a database, or of the current one, as in SHOW SIEVE INDEXES.",
      "SELECT table, index, state, bytes FROM _FUNC_('shop') ORDER BY bytes DESC;",
      "orders  id_sieve  ready  13567"),
    TableFunction("sieve_versions", Seq("table"), Nil,
      "The versions of the Sieve indexes of a table, as in SHOW SIEVE VERSIONS.",
      "SELECT index, version, change, files FROM _FUNC_('orders');",
      "id_sieve  1  created  100"),
    TableFunction("sieve_describe", Seq("table", "index"), Seq("detail"),
      "The properties of a Sieve index, as in DESCRIBE SIEVE INDEX; with 'extended', all details.",
      "SELECT value FROM _FUNC_('orders', 'id_sieve', 'extended') WHERE property = 'freshness';",
      "current"),
    TableFunction("sieve_explain", Seq("query"), Nil,
      "The file scans of a query with the files that Sieve indexes leave, as in EXPLAIN SIEVE.",
      "SELECT table, files_total, files_read FROM _FUNC_('SELECT * FROM orders WHERE id = 123457');",
      "spark_catalog.default.orders  100  1"),
    TableFunction("sieve_advice", Nil, Seq("database"),
      "The indexes worth creating and those worth dropping, as in ADVISE SIEVE INDEXES.",
      "SELECT action, table, column, statement FROM _FUNC_('shop');",
      "create  orders  id  CREATE SIEVE INDEX ON shop.orders (id)"),
    TableFunction("sieve_segments", Seq("table", "index"), Nil,
      "The segments of the current version of a Sieve index, one row each.",
      "SELECT segment, first_key, last_key, expected_files FROM _FUNC_('orders', 'id_sieve');",
      "1  0  999999  1.02"),
    TableFunction("sieve_inspect", Seq("table", "index"), Nil,
      "A Sieve index as a picture, a PNG, and a summary: which files it reads for which keys.",
      "SELECT summary FROM _FUNC_('orders', 'id_sieve');",
      "files read for a key that occurs: 1.03 of 100 expected; at least 1.00, by min and max 32.66"),
    TableFunction("sieve_files", Seq("table", "predicate"), Nil,
      "The files of a table, which of them a scan with the predicate keeps, and why.",
      "SELECT kept, reason, count(*) FROM _FUNC_('orders', 'id = 123457') GROUP BY ALL;",
      "true   may hold a match (id_sieve@1)  2",
      "false  skipped by id_sieve@1          98"),
    TableFunction("sieve_status", Nil, Nil,
      "Counters of this driver since its start: scans, files skipped, why indexes were not used.",
      "SELECT reason, value FROM _FUNC_() WHERE counter = 'index_not_used' AND value > 0;",
      "no-predicate  7"))

  /** The description that DESCRIBE FUNCTION EXTENDED shows. */
  def info(of: Class[_], name: String, usage: String, example: Seq[String]): ExpressionInfo = {
    val text = s"\n    Examples:\n      > ${example.head}\n${example.tail.map(l => s"       $l\n").mkString}  "
    new ExpressionInfo(of.getName, null, name, usage, "", text, "", "", "", "", "built-in")
  }

  def refused(problem: String): SieveException =
    new SieveException("SIEVE_INVALID_ARGUMENT", problem, state = "22023")

  private def constant(e: Expression): Option[String] =
    if (!e.foldable || e.dataType != StringType) None
    else Try(e.eval()).toOption.filter(_ != null).map(_.toString)
}
