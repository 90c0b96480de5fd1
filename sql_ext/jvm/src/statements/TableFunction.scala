package org.apache.spark.sql.sieve.statements

import scala.jdk.CollectionConverters._
import scala.util.Try
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.AnalysisContext
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.sieve.ask.FrontendClient
import org.apache.spark.sql.sieve.base.{Compat, Policy, SieveException}
import org.apache.spark.sql.sieve.observe.CatalogEvents
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

  /** A table's name where a view would look for it, in a view. */
  private def qualified(name: Seq[String]): Seq[String] =
    if (name.size == 1) AnalysisContext.get.catalogAndNamespace ++ name else name

  private def parts(name: String, what: String): Seq[String] =
    try asking.sessionState.sqlParser.parseMultipartIdentifier(name)
    catch { case _: ParseException => throw TableFunction.refused(s"'$name' is not the name of $what") }
}

/**
 * A function in FROM as `policy.json` describes it. It takes constant strings by position; those called
 * `table` or `database` are names as SQL has them.
 */
final class TableFunction(val name: String, spec: JsonNode) {
  private def parameters(kind: String) = spec.get(kind).elements.asScala.map(_.asText).toList
  private val (required, optional) = (parameters("required"), parameters("optional"))
  private val usage = {
    val must = required.map(a => s"'$a'").mkString(", ")
    optional.foldLeft(must)((before, a) => if (before.isEmpty) s"['$a']" else s"$before [, '$a']")
  }

  val info: ExpressionInfo = TableFunction.info(
    classOf[LocalRelation], name, s"_FUNC_($usage) - ${spec.get("tells").asText}", spec.get("example"))

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
  val all: Seq[TableFunction] = {
    val specs = Policy.at("/table_functions")
    specs.fieldNames.asScala.map(name => new TableFunction(name, specs.get(name))).toList
  }

  /** What DESCRIBE FUNCTION EXTENDED shows; the example is a query and its rows, a line each. */
  def info(of: Class[_], name: String, usage: String, example: JsonNode): ExpressionInfo = {
    val lines = example.elements.asScala.map(_.asText).toList
    val text = s"\n    Examples:\n      > ${lines.head}\n${lines.tail.map(l => s"       $l\n").mkString}  "
    new ExpressionInfo(of.getName, null, name, usage, "", text, "", "", "", "", "built-in")
  }

  def refused(problem: String): SieveException =
    new SieveException("SIEVE_INVALID_ARGUMENT", problem, state = "22023")

  private def constant(e: Expression): Option[String] =
    if (!e.foldable || e.dataType != StringType) None
    else Try(e.eval()).toOption.filter(_ != null).map(_.toString)
}
