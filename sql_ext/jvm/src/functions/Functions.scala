package org.apache.spark.sql.sieve

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.AnalysisContext
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.types.StringType

/**
 * A function in FROM until its rows are there. Spark's catalog makes it under its own lock, which
 * finding those rows needs, too.
 */
case class FunctionCall(name: String, arguments: Seq[(String, String)]) extends LeafNode {
  override def output: Seq[Attribute] = Nil
  override lazy val resolved: Boolean = false
}

/** Asks the front end for the rows of functions, as things are when the query is analysed. */
class FunctionRows(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case FunctionCall(name, arguments) =>
      val asking = session.asInstanceOf[Compat.Session]
      val reply = Link.ask(asking, "function", { body =>
        val values = body.put("name", name).putObject("arguments")
        arguments.foreach {
          case ("table", table) => Functions.table(asking, table).foreach(values.withArray("table").add(_))
          case ("database", database) =>
            Functions.parts(asking, database, "a database").foreach(values.withArray("database").add(_))
          case (what, value) => values.put(what, value)
        }
      })
      val columns = SieveStatement.columns(reply)
      LocalRelation.fromExternalRows(columns, SieveStatement.rows(reply, columns))
  }
}

/**
 * A function in FROM, which takes constant strings by position: those that are `required`, and as many
 * of the `optional` ones as there are. What is called `table` or `database` is a name as SQL has it.
 */
final case class TableFunction(
    name: String, required: Seq[String], optional: Seq[String], tells: String, examples: String) {
  private val usage = {
    val must = required.map(a => s"'$a'").mkString(", ")
    optional.foldLeft(must)((told, a) => if (told.isEmpty) s"['$a']" else s"$told [, '$a']")
  }
  private val most = required.size + optional.size

  val info: ExpressionInfo =
    Functions.info(classOf[LocalRelation], name, s"_FUNC_($usage) - $tells", examples)

  def call(arguments: Seq[Expression]): LogicalPlan = {
    if (arguments.size < required.size || arguments.size > most) {
      val wanted = if (optional.isEmpty) s"$most" else s"${required.size} to $most"
      throw Functions.refused(s"$name($usage) takes $wanted arguments, not ${arguments.size}")
    }
    FunctionCall(name, (required ++ optional).zip(arguments).map { case (what, e) =>
      what -> Functions.constant(e).getOrElse(throw Functions.refused(
        s"$name($usage) takes constant strings, which ${e.sql} for '$what' is not"))
    })
  }
}

/** What SQL functions of Sieve say of themselves, and how they are called. */
object Functions {
  val all: Seq[TableFunction] = Seq(
    TableFunction("sieve_indexes", Nil, Seq("database"),
      "The Sieve indexes of a database, or of the current one, as SHOW SIEVE INDEXES tells them.",
      """
    Examples:
      > SELECT table, index, state, bytes FROM _FUNC_('shop') ORDER BY bytes DESC;
       orders  id_sieve  ready  13567
  """),
    TableFunction("sieve_versions", Seq("table"), Nil,
      "The versions of the Sieve indexes of a table, as SHOW SIEVE VERSIONS tells them.",
      """
    Examples:
      > SELECT index, version, change, files FROM _FUNC_('orders');
       id_sieve  1  created  100
  """),
    TableFunction("sieve_describe", Seq("table", "index"), Seq("detail"),
      "What a Sieve index is, as DESCRIBE SIEVE INDEX tells it, with 'extended' as detail likewise.",
      """
    Examples:
      > SELECT value FROM _FUNC_('orders', 'id_sieve', 'extended') WHERE property = 'freshness';
       current
  """),
    TableFunction("sieve_explain", Seq("query"), Nil,
      "The file scans of a query and what Sieve indexes leave of them, as EXPLAIN SIEVE tells them.",
      """
    Examples:
      > SELECT table, files_total, files_read FROM _FUNC_('SELECT * FROM orders WHERE id = 123457');
       spark_catalog.default.orders  100  1
  """),
    TableFunction("sieve_segments", Seq("table", "index"), Nil,
      "The segments of the current version of a Sieve index, one row each.",
      """
    Examples:
      > SELECT segment, first_key, last_key, expected_files FROM _FUNC_('orders', 'id_sieve');
       1  0  999999  1.02
  """),
    TableFunction("sieve_files", Seq("table", "predicate"), Nil,
      "The files of a table, which of them a scan with the predicate keeps, and why.",
      """
    Examples:
      > SELECT kept, reason, count(*) FROM _FUNC_('orders', 'id = 123457') GROUP BY ALL;
       true   may hold a match (id_sieve@1)  2
       false  skipped by id_sieve@1          98
  """),
    TableFunction("sieve_status", Nil, Nil,
      "Counters of this driver since its start: scans, files skipped, why indexes were not used.",
      """
    Examples:
      > SELECT reason, value FROM _FUNC_() WHERE counter = 'index_not_used' AND value > 0;
       no-predicate  7
  """))

  def info(of: Class[_], name: String, usage: String, examples: String): ExpressionInfo =
    new ExpressionInfo(of.getName, null, name, usage, "", examples, "", "", "", "", "built-in")

  def refused(problem: String): SieveException = new SieveException("SIEVE_INVALID_ARGUMENT", problem, state = "22023")

  def constant(e: Expression): Option[String] =
    if (!e.foldable || e.dataType != StringType) None
    else Try(e.eval()).toOption.filter(_ != null).map(_.toString)

  /** The parts of a table's name as SQL has them; in a view, where the view would look for it. */
  def table(session: Compat.Session, name: String): Seq[String] = {
    val own = parts(session, name, "a table")
    if (own.size == 1) AnalysisContext.get.catalogAndNamespace ++ own else own
  }

  def parts(session: Compat.Session, name: String, what: String): Seq[String] =
    try session.sessionState.sqlParser.parseMultipartIdentifier(name)
    catch { case _: ParseException => throw refused(s"'$name' is not the name of $what") }
}
