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
case class FunctionCall(name: String, arguments: Seq[String]) extends LeafNode {
  override def output: Seq[Attribute] = Nil
  override lazy val resolved: Boolean = false
}

/** Asks the front end for the rows of functions, as things are when the query is analysed. */
class FunctionRows(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case FunctionCall(name, arguments) =>
      val asking = session.asInstanceOf[Compat.Session]
      val reply = Link.ask(asking, "function", { body =>
        body.put("name", name)
        arguments.headOption.foreach(
          Functions.table(asking, _).foreach(body.withArray("table").add(_)))
        arguments.drop(1).foreach(body.withArray("arguments").add(_))
      })
      val columns = SieveStatement.columns(reply)
      LocalRelation.fromExternalRows(columns, SieveStatement.rows(reply, columns))
  }
}

/** What SQL functions of Sieve say of themselves, and how they are called. */
object Functions {
  val segments: ExpressionInfo = info(
    classOf[LocalRelation], "sieve_segments",
    "_FUNC_('table', 'index') - The segments of the current version of a Sieve index, one row each.",
    """
    Examples:
      > SELECT segment, first_key, last_key, expected_files FROM _FUNC_('orders', 'id_sieve');
       1  0  999999  1.02
  """)

  val files: ExpressionInfo = info(
    classOf[LocalRelation], "sieve_files",
    "_FUNC_('table', 'predicate') - The files of a table, which of them a scan with the predicate " +
      "keeps, and why.",
    """
    Examples:
      > SELECT kept, reason, count(*) FROM _FUNC_('orders', 'id = 123457') GROUP BY ALL;
       true   may hold a match (id_sieve@1)  2
       false  skipped by id_sieve@1          98
  """)

  val status: ExpressionInfo = info(
    classOf[LocalRelation], "sieve_status",
    "_FUNC_() - Counters of this driver since its start: scans, files skipped, why indexes were not used.",
    """
    Examples:
      > SELECT reason, value FROM _FUNC_() WHERE counter = 'index_not_used' AND value > 0;
       no-predicate  7
  """)

  /**
   * A call of the function `name`, whose arguments are `of`, all constant strings: if there are any,
   * the name of a table comes first.
   */
  def call(name: String, of: Seq[String])(arguments: Seq[Expression]): LogicalPlan = {
    val usage = s"$name(${of.map(a => s"'$a'").mkString(", ")})"
    if (arguments.size != of.size) {
      throw refused(s"$usage takes ${of.size} arguments, not ${arguments.size}")
    }
    FunctionCall(name, arguments.zip(of).map { case (e, what) => constant(e).getOrElse(
      throw refused(s"$usage takes constant strings, which ${e.sql} for '$what' is not"))
    })
  }

  def info(of: Class[_], name: String, usage: String, examples: String): ExpressionInfo =
    new ExpressionInfo(of.getName, null, name, usage, "", examples, "", "", "", "", "built-in")

  def refused(problem: String): SieveException = new SieveException("SIEVE_INVALID_ARGUMENT", problem)

  private def constant(e: Expression): Option[String] =
    if (!e.foldable || e.dataType != StringType) None
    else Try(e.eval()).toOption.filter(_ != null).map(_.toString)

  /** The parts of a table's name as SQL has them; in a view, where the view would look for it. */
  def table(session: Compat.Session, name: String): Seq[String] = {
    val parts =
      try session.sessionState.sqlParser.parseMultipartIdentifier(name)
      catch { case _: ParseException => throw refused(s"'$name' is not the name of a table") }
    if (parts.size == 1) AnalysisContext.get.catalogAndNamespace ++ parts else parts
  }
}
