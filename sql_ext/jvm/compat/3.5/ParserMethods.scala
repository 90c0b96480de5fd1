package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * A parser that passes text to a previous parser, with the methods of ParserInterface that other releases of Spark
 * lack. A class, instead of a proxy, lets every exception pass: a proxy wraps an AnalysisException.
 */
trait ParserMethods extends ParserInterface {
  protected def delegate: ParserInterface

  /**
   * The plan of a statement.
   *
   * @param parameters Spark's values of the statement's parameters; None if Spark passes no values to the parser
   * @param others parses a text with the previous parser
   */
  protected def plan(text: String, parameters: Option[AnyRef])(others: String => LogicalPlan): LogicalPlan

  override def parsePlan(text: String): LogicalPlan = plan(text, None)(delegate.parsePlan)
}
