package org.apache.spark.sql.sieve.statements

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.SetCommand
import org.apache.spark.sql.sieve.base.{Compat, ParserMethods, Settings, SieveException}
import org.apache.spark.sql.sieve.observe.CatalogEvents

/**
 * Parses SIEVE statements, and passes all other text unchanged to the session's previous parser.
 *
 * @param delegate the previous parser. The parser is a field, because Iceberg's procedures search the fields of a
 *                 parser's class for Iceberg's parser
 */
class StatementParser(session: SparkSession, protected val delegate: ParserInterface) extends ParserMethods {
  private val own = session.asInstanceOf[Compat.Session]
  private val ownership = new StatementOwnership(own, delegate)

  override protected def plan(text: String, parameters: Option[AnyRef])(others: String => LogicalPlan): LogicalPlan =
    if (ownership.owns(text)) Parameters.plan(text, parameters)(statement(text))
    else try {
      val script = if (Scripts.isBlock(text)) Scripts.handedOn(text, ownership.owns, Parameters.inText(_, parameters)) else text
      others(script) match {
        case set @ SetCommand(Some((key, Some(_)))) => Settings.unknown(key).fold[LogicalPlan](set)(UnknownSetting(set, _))
        case plan =>
          if (StatementParser.changesTables(plan)) CatalogEvents.follow(own)
          plan
      }
    } catch {
      case refusal: ParseException if StatementOwnership.isNear(text) => statement(text) match {
        case ours: RefusedStatement if ours.failure.condition == "SIEVE_SYNTAX_ERROR" => ours
        case _ => throw refusal
      }
    }

  /**
   * The plan of a SIEVE statement. If the statement has an error, the plan throws this error only when Spark runs the
   * plan.
   */
  private def statement(sql: String): LogicalPlan =
    try SieveStatement.parsed(own, sql) catch { case e: SieveException => RefusedStatement(e) }
}

object StatementParser {
  /**
   * True if the name of a plan's class suggests that the plan changes the catalog. A plan that changes the catalog
   * needs the catalog anyway.
   */
  private def changesTables(plan: LogicalPlan): Boolean =
    changes.findFirstIn(plan.getClass.getSimpleName).isDefined
  private val changes =
    "^(Drop|Rename|Alter|Set[TNV]|Unset|Add|Replace|Create|Insert|Truncate|Recover|Load)".r
}
