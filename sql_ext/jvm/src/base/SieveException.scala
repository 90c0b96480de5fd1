package org.apache.spark.sql.sieve.base

import org.apache.spark.QueryContext
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.trees.Origin

/**
 * An error of Sieve with a condition, a message and an SQLSTATE. Clients receive the error in the form of Spark's own
 * errors.
 */
class SieveException(
    val condition: String, text: String, cause: Option[Throwable] = None, state: String)
    extends AnalysisException(
      s"[$condition] $text", None, None, cause, Some(condition), Map.empty[String, String],
      Array.empty[QueryContext]) {
  override def getSqlState: String = state

  /**
   * Ignores the position. For an error with a position, PySpark looks up the message template of the condition, and
   * Spark has no template for Sieve's conditions.
   */
  override def withPosition(origin: Origin): AnalysisException = this
}
