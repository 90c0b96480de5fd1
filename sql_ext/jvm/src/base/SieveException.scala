package org.apache.spark.sql.sieve.base

import org.apache.spark.QueryContext
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.trees.Origin

/** A failure of Sieve's own, raised as Spark raises its own: clients see class, text and SQLSTATE. */
class SieveException(
    val condition: String, text: String, cause: Option[Throwable] = None, state: String)
    extends AnalysisException(
      s"[$condition] $text", None, None, cause, Some(condition), Map.empty[String, String],
      Array.empty[QueryContext]) {
  override def getSqlState: String = state

  /** Of an error with a position PySpark asks for the template of its condition, which Spark lacks. */
  override def withPosition(origin: Origin): AnalysisException = this
}
