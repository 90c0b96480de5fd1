package org.apache.spark.sql.sieve.statements

import java.util.regex.Pattern
import scala.collection.mutable
import org.apache.spark.sql.catalyst.analysis.{NamedParameter, NameParameterizedQuery, PosParameter}
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Expression, Literal}
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.sieve.base.Compat

/** A parameter marker in a statement, either `?` or `:name`. */
final case class Marker(start: Int, end: Int, name: Option[String])

/**
 * A SIEVE statement with parameter markers. Spark's analyzer fills `values`, and reports an error if a marker has no
 * value. `BindStatement` then creates a statement from the text and the values.
 */
case class ParameterizedStatement(text: String, markers: Seq[Marker], values: Seq[Expression]) extends LeafNode {
  override def output: Seq[Attribute] = Nil
  override lazy val resolved: Boolean = false

  /** The values without aliases. Spark 4.0 passes the value of `USING 5 AS x` with its alias. */
  private lazy val constants = values.map { case Alias(value, _) => value; case value => value }

  def isBound: Boolean = constants.forall(value => value.resolved && value.foldable)

  /** The text of the statement, with the values in place of the markers. */
  def bound: String = {
    val text = new StringBuilder(this.text)
    for ((marker, value) <- markers.zip(constants).reverse)
      text.replace(marker.start, marker.end, if (value.eval() == null) "NULL" else value.sql)
    text.toString
  }
}

/** Replaces a `ParameterizedStatement` by a `SieveStatement` after Spark has bound the parameters. */
class BindStatement(session: Compat.Session) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case statement: ParameterizedStatement if statement.isBound => SieveStatement.parsed(session, statement.bound)
    case other => other
  }
}

object Parameters {
  /**
   * True if Spark passes the values of parameters to the parser. Older releases pass parameters only to the analyzer.
   */
  private val inParser = classOf[ParserInterface].getMethods.exists(_.getName == "parsePlanWithParameters")

  // Possessive quantifiers prevent backtracking, as in `StatementOwnership`. A colon directly after a name or a bracket
  // begins a path in a VARIANT, as in `payload:user.id`.
  private val scan = Pattern.compile(s"(?s)${StatementOwnership.string}" +
    """|`[^`]*+`|--[^\n]*+|/\*.*?\*/|::|(?<![\p{L}\p{N}_`)\]]):([\p{L}_][\p{L}\p{N}_]*+)|(\?)""")

  /**
   * Returns the plan of a SIEVE statement. `context` contains the parameters, if this release of Spark passes
   * parameters to the parser.
   */
  def plan(sql: String, context: Option[AnyRef])(unparameterized: => LogicalPlan): LogicalPlan =
    (markers(sql), context) match {
      case (Nil, _) => unparameterized
      case (found, None) => if (inParser) unparameterized else statement(sql, found)
      case (found, Some(some)) =>
        val (names, places) = (named(some), positional(some))
        // A colon can have other meanings, so a name after a colon counts as a parameter only if the name has a value.
        val (known, unnamed) = (found.filter(_.name.exists(names.contains)), found.filter(_.name.isEmpty))
        if (known.nonEmpty) NameParameterizedQuery(statement(sql, known), names)
        else if (unnamed.nonEmpty && places.nonEmpty) Compat.withPositions(statement(sql, unnamed), places)
        else unparameterized
    }

  /**
   * Replaces the named parameters in one statement of a block by their values. Markers `?` remain, because Spark counts
   * them across the whole block.
   */
  def inText(sql: String, context: Option[AnyRef]): String = {
    val names = context.map(named).getOrElse(Map.empty)
    val found = markers(sql).filter(_.name.exists(names.contains))
    ParameterizedStatement(sql, found, found.flatMap(_.name.map(names))).bound
  }

  private def named(context: AnyRef): Map[String, Expression] = members(context) match {
    case Seq(named: Map[_, _]) => named.map { case (name, value) => name.toString -> expression(value) }
    case Seq(values: Seq[_], names: Seq[_]) => names.map(_.toString).zip(values.map(expression)).toMap
    case _ => Map.empty
  }

  private def positional(context: AnyRef): Seq[Expression] = members(context) match {
    case Seq(values: Seq[_], _*) => values.map(expression)
    case _ => Nil
  }

  /**
   * The fields of Spark's parameter context, read through `Product`, because older releases of Spark lack the context's
   * class.
   */
  private def members(context: AnyRef): Seq[Any] = context.asInstanceOf[Product].productIterator.toSeq

  private def statement(sql: String, found: Seq[Marker]): ParameterizedStatement =
    ParameterizedStatement(sql, found, found.map(m => m.name.fold[Expression](PosParameter(m.start))(NamedParameter(_))))

  private def expression(value: Any): Expression = value match {
    case made: Expression => made
    case other => Literal(other)
  }

  private def markers(sql: String): Seq[Marker] = {
    val (found, matcher) = (mutable.Buffer.empty[Marker], scan.matcher(sql))
    while (matcher.find())
      if (matcher.group(1) != null || matcher.group(2) != null)
        found += Marker(matcher.start, matcher.end, Option(matcher.group(1)))
    found.toSeq
  }
}
