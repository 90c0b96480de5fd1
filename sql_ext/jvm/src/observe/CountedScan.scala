package org.apache.spark.sql.sieve

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.metric.SQLMetric

/** A scan that shows in Spark's user interface, beside the files read, how many the index has skipped. */
trait CountedScan extends FileSourceScanExec {
  /** What the driver counts: what it does of Spark's own scan, and what the listing does. */
  override lazy val driverMetrics: Map[String, SQLMetric] = relation.location match {
    case index: SieveFileIndex => copy().driverMetrics ++ index.metrics
    case _ => copy().driverMetrics
  }

  /** Never equal to Spark's own, or Spark, which keeps what equals, would not put one for the other. */
  override def canEqual(other: Any): Boolean = other.isInstanceOf[CountedScan]
  override def equals(other: Any): Boolean = canEqual(other) && super.equals(other)
  override def hashCode: Int = super.hashCode
}

/** Puts such scans into plans. */
trait CountedScans {
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
}
