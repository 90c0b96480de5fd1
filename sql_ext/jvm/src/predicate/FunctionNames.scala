package org.apache.spark.sql.sieve.predicate

import java.util.Locale
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke

/** The names and symbols of functions, as users write them in SQL. */
private object FunctionNames {
  def of(e: Expression): String = e.getTagValue(FunctionRegistry.FUNC_ALIAS).getOrElse(e match {
    case operator: BinaryOperator => operator.symbol
    case _: GetArrayItem | _: GetMapValue => "[]"
    case _: GetStructField | _: GetArrayStructFields => "."
    case _: CaseWhen => "CASE"
    case _: MultiLikeBase => "LIKE"
    case f: StaticInvoke => f.functionName
    case f: UserDefinedExpression => f.name
    case f => f.prettyName.toLowerCase(Locale.ROOT)
  })
}
