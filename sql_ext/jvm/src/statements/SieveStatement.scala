package org.apache.spark.sql.sieve.statements

import scala.jdk.CollectionConverters._
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.sieve.ask.FrontendClient
import org.apache.spark.sql.sieve.base.{Compat, SieveException}
import org.apache.spark.sql.sieve.observe.CatalogEvents
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.{BinaryType, BooleanType, DataType, DoubleType, LongType}

/**
 * The plan of a SIEVE statement. The columns of the result are known after parsing. The front end computes the rows of
 * the result when Spark runs the statement.
 */
case class SieveStatement(text: String, override val output: Seq[Attribute]) extends LeafRunnableCommand {
  override def run(session: SparkSession): Seq[Row] = {
    val own = session.asInstanceOf[Compat.Session]
    CatalogEvents.settled(own)
    SieveStatement.rows(FrontendClient.ask(own, "statement", Map("text" -> text)), output)
  }
}

/** A SIEVE statement with a syntax error. The statement fails with Sieve's error message when Spark runs it. */
case class RefusedStatement(failure: SieveException) extends LeafRunnableCommand {
  override def run(session: SparkSession): Seq[Row] = throw failure
}

object SieveStatement {
  def parsed(session: Compat.Session, text: String): SieveStatement =
    SieveStatement(text, columns(FrontendClient.ask(session, "parse", Map("text" -> text))))

  /** The result columns in an answer of the front end. */
  def columns(reply: JsonNode): Seq[Attribute] = reply.get("columns").elements.asScala.map { c =>
    AttributeReference(c.get(0).asText, DataType.fromDDL(c.get(1).asText))()
  }.toList

  /** The result rows in an answer of the front end. Each value has the type of its column. */
  def rows(reply: JsonNode, columns: Seq[Attribute]): Seq[Row] =
    reply.get("rows").elements.asScala.map { row =>
      Row.fromSeq(columns.zipWithIndex.map { case (column, k) => value(row.get(k), column.dataType) })
    }.toList

  private def value(node: JsonNode, to: DataType): Any = to match {
    case _ if node.isNull => null
    case LongType => node.asLong
    case DoubleType => node.asDouble
    case BooleanType => node.asBoolean
    case BinaryType => node.binaryValue // base64
    case _ => node.asText
  }
}
