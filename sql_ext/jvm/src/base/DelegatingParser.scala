package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.catalyst.{FunctionIdentifier, TableIdentifier}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * A parser that passes text to a previous parser. `ParserMethods` adds the methods of single releases of Spark. A
 * class, instead of a proxy, lets every exception pass: a proxy wraps an AnalysisException.
 */
trait DelegatingParser extends ParserInterface {
  protected def delegate: ParserInterface

  /**
   * The plan of a statement.
   *
   * @param parameters Spark's values of the statement's parameters; None if Spark passes no values to the parser
   * @param others parses a text with the previous parser
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
