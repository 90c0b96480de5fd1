package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.catalyst.parser.ParameterContext
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.StructType

/** The methods that parsers have in this release of Spark, but not in every release. */
trait ParserMethods extends DelegatingParser {
  override def parsePlanWithParameters(text: String, context: ParameterContext): LogicalPlan =
    plan(text, Some(context))(delegate.parsePlanWithParameters(_, context))
  override def parseRoutineParam(text: String): StructType = delegate.parseRoutineParam(text)
}
