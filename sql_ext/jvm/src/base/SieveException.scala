package org.apache.spark.sql.sieve.base

import org.apache.spark.QueryContext
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.trees.Origin

/**
 * An error of Sieve with a condition, a message and an SQLSTATE. Clients receive this error in the same form as Spark's
 * own errors.
 */
class SieveException(
    val condition: String, text: String, cause: Option[Throwable] = None, state: String)
    extends AnalysisException(
      s"[$condition] $text", None, None, cause, Some(condition), Map.empty[String, String],
      Array.empty[QueryContext]) {
  override def getSqlState: String = state

  /**
   * Ignores the position in the SQL text. For an error with a position, PySpark looks up a message template by the
   * error's condition. Spark has no templates for Sieve's conditions.
   */
  override def withPosition(origin: Origin): AnalysisException = this
}
