package org.apache.spark.sql.sieve

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.{BooleanType, DataType, DoubleType, LongType}

/** A SIEVE statement: its columns are known once it parses, its rows once the front end ran it. */
case class SieveStatement(text: String, override val output: Seq[Attribute])
    extends LeafRunnableCommand {

  override def run(session: SparkSession): Seq[Row] = {
    val reply = Link.ask(session.asInstanceOf[Compat.Session], "statement", _.put("text", text))
    SieveStatement.rows(reply, output)
  }
}

/** A SIEVE statement that does not parse: it fails, in its own words, as soon as it is run. */
case class RefusedStatement(failure: SieveException) extends LeafRunnableCommand {
  override def run(session: SparkSession): Seq[Row] = throw failure
}

object SieveStatement {
  def apply(session: Compat.Session, text: String): SieveStatement = {
    val reply = Link.ask(session, "parse", _.put("text", text))
    SieveStatement(text, columns(reply))
  }

  /** The columns that the front end announces. */
  def columns(reply: JsonNode): Seq[Attribute] = reply.get("columns").elements.asScala.map { c =>
    AttributeReference(c.get(0).asText, DataType.fromDDL(c.get(1).asText))()
  }.toList

  /** The rows that it answers with. */
  def rows(reply: JsonNode, columns: Seq[Attribute]): Seq[Row] =
    reply.get("rows").elements.asScala.map { row =>
      Row.fromSeq(row.elements.asScala.zip(columns.iterator).map { case (v, a) =>
        value(v, a.dataType)
      }.toSeq)
    }.toList

  private def value(node: JsonNode, to: DataType): Any = to match {
    case _ if node.isNull => null
    case LongType => node.asLong
    case DoubleType => node.asDouble
    case BooleanType => node.asBoolean
    case _ => node.asText
  }
}
