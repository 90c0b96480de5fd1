package org.apache.spark.sql.sieve

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.metric.SQLMetric

/** Scans that show in Spark's user interface, beside the files read, how many the index has skipped. */
trait CountedScan {
  /** The same scan, of the class that counts. */
  def of(scan: FileSourceScanExec): FileSourceScanExec

  /**
   * A plan whose scans count. Plug-ins that replace Spark's operators may know them by their class
   * alone: where there is any, the scans stay Spark's own.
   */
  def in(plan: SparkPlan, session: SparkSession): SparkPlan =
    if (session.sessionState.columnarRules.nonEmpty) plan
    else plan.transform { case scan: FileSourceScanExec => of(scan) }

  /** What the driver counts of a scan: what Spark does, and what its listing does. */
  def metrics(scan: FileSourceScanExec): Map[String, SQLMetric] = scan.relation.location match {
    case index: SieveFileIndex => scan.driverMetrics ++ index.metrics
    case _ => scan.driverMetrics
  }
}
