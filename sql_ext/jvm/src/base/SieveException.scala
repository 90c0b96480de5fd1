package org.apache.spark.sql.sieve.base

import org.apache.spark.QueryContext
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.trees.Origin

/**
 * An error of Sieve, raised as Spark raises its own errors: clients see condition, text and SQLSTATE.
 */
class SieveException(
    val condition: String, text: String, cause: Option[Throwable] = None, state: String)
    extends AnalysisException(
      s"[$condition] $text", None, None, cause, Some(condition), Map.empty[String, String],
      Array.empty[QueryContext]) {
  override def getSqlState: String = state

  /**
   * For an error with a position, PySpark looks up its condition's template, which Spark does not have.
   */
  override def withPosition(origin: Origin): AnalysisException = this
}
