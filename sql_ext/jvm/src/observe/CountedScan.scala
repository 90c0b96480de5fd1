package org.apache.spark.sql.sieve

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.metric.SQLMetric

/** A scan that shows in Spark's user interface, beside the files read, how many the index has skipped. */
trait CountedScan extends FileSourceScanExec {
  /** What Spark's own scan counts in the driver, and what the listing does. */
  override lazy val driverMetrics: Map[String, SQLMetric] = relation.location match {
    case index: SieveFileIndex => copy().driverMetrics ++ index.metrics
    case _ => copy().driverMetrics
  }

  /** Spark copies a node by the constructor arguments of its class, which only its own scan has. */
  override def makeCopy(arguments: Array[AnyRef]): SparkPlan = {
    def made(): SparkPlan = copy().makeCopy(arguments) match {
      case scan: FileSourceScanExec => new SieveScan(scan)
    }
    val counted = if (session == null) made() else session.withActive(made())
    counted.copyTagsFrom(this)
    counted
  }

  override def clone(): SparkPlan = makeCopy(productIterator.map(_.asInstanceOf[AnyRef]).toArray)

  /** Never equal to Spark's own, or Spark, which keeps what equals, would not put one for the other. */
  override def canEqual(other: Any): Boolean = other.isInstanceOf[CountedScan]
  override def equals(other: Any): Boolean = canEqual(other) && super.equals(other)
  override def hashCode: Int = super.hashCode
}

object CountedScan {
  /**
   * A plan whose scans count. Plug-ins that replace Spark's operators may know them by their class
   * alone: where there is any, the scans stay Spark's own. So they do in a Spark whose scan has other
   * arguments than the one this was compiled for.
   */
  def in(plan: SparkPlan, session: SparkSession): SparkPlan =
    if (session.sessionState.columnarRules.nonEmpty) plan
    else plan.transform {
      case scan: FileSourceScanExec => try new SieveScan(scan) catch { case _: LinkageError => scan }
    }
}
