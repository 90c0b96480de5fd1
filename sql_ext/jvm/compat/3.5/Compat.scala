package org.apache.spark.sql.sieve

import org.apache.spark.sql.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** What differs between lines of Spark versions: here 3.5, one session class for all. */
object Compat {
  type Session = SparkSession

  def frame(session: Session, plan: LogicalPlan): DataFrame = Dataset.ofRows(session, plan)
}
