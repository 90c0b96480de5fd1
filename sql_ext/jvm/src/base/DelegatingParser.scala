package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.catalyst.{FunctionIdentifier, TableIdentifier}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * A parser that passes texts to the previously installed parser. `ParserMethods` adds the methods that only some
 * releases of Spark have. A dynamic proxy would need no `ParserMethods`, but would wrap each AnalysisException in
 * another exception.
 */
trait DelegatingParser extends ParserInterface {
  protected def delegate: ParserInterface

  /**
   * Returns the plan of a statement.
   *
   * @param parameters the values that Spark passes to the parser for the statement's parameters; None if Spark passes
   *                   no values
   * @param others     parses a text with the parser that was installed before this one
   */
  protected def plan(text: String, parameters: Option[AnyRef])(others: String => LogicalPlan): LogicalPlan

  override def parsePlan(text: String): LogicalPlan = plan(text, None)(delegate.parsePlan)
  override def parseExpression(text: String): Expression = delegate.parseExpression(text)
  override def parseTableIdentifier(text: String): TableIdentifier = delegate.parseTableIdentifier(text)
  override def parseFunctionIdentifier(text: String): FunctionIdentifier = delegate.parseFunctionIdentifier(text)
  override def parseMultipartIdentifier(text: String): Seq[String] = delegate.parseMultipartIdentifier(text)
  override def parseQuery(text: String): LogicalPlan = delegate.parseQuery(text)
  override def parseTableSchema(text: String): StructType = delegate.parseTableSchema(text)
  override def parseDataType(text: String): DataType = delegate.parseDataType(text)
}
