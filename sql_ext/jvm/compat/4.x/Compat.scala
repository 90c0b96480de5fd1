package org.apache.spark.sql.sieve

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{Dataset, SparkSession}

/** What differs between lines of Spark versions: here 4.x, where the session that plans is `classic`. */
object Compat {
  type Session = SparkSession

  def frame(session: Session, plan: LogicalPlan): DataFrame = Dataset.ofRows(session, plan)
}
