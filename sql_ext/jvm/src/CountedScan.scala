package org.apache.spark.sql.sieve

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.metric.SQLMetric

/** Scans that show in Spark's user interface, beside the files read, how many the index has skipped. */
trait CountedScan {
  /** The class that counts. */
  protected def kind: Class[_ <: FileSourceScanExec]

  /** The same scan, of that class. */
  protected def of(scan: FileSourceScanExec): FileSourceScanExec

  /**
   * A plan whose scans count. Plug-ins that replace Spark's operators may know them by their class
   * alone: where there is any, the scans stay Spark's own. So they do in a Spark whose scan has other
   * arguments than the one this was compiled for.
   */
  def in(plan: SparkPlan, session: SparkSession): SparkPlan =
    if (session.sessionState.columnarRules.nonEmpty) plan
    else plan.transform {
      case scan: FileSourceScanExec if scan.productArity == arity =>
        try of(scan) catch { case _: LinkageError => scan }
    }

  private lazy val arity = kind.getConstructors.head.getParameterCount

  /** What the driver counts of a scan: what Spark does, and what its listing does. */
  def metrics(scan: FileSourceScanExec): Map[String, SQLMetric] = scan.relation.location match {
    case index: SieveFileIndex => scan.driverMetrics ++ index.metrics
    case _ => scan.driverMetrics
  }
}
