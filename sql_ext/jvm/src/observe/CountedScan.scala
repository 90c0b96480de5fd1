package org.apache.spark.sql.sieve

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
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

  /** Spark's own scan with the values that filters have by now; it has listed its files. */
  protected def listed: FileSourceScanExec = {
    val own = copy(dataFilters = RunTimeFilters.resolved(this))
    own.selectedPartitions
    own.driverMetrics.foreach { case (name, metric) =>
      if (!metric.isZero) driverMetrics.get(name).foreach(_.set(metric.value))
    }
    own
  }

  /** A filter that Spark gave up is none: the scan equals others without it, and shares exchanges. */
  override def doCanonicalize(): FileSourceScanExec = {
    val used = dataFilters.filterNot(RunTimeFilters.isUnused)
    if (used.size == dataFilters.size) super.doCanonicalize() else copy(dataFilters = used).doCanonicalize()
  }

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

  /** A plan whose scans have these filters, too, which have their values while the query runs. */
  def withFilters(plan: SparkPlan, filters: Seq[Expression]): SparkPlan =
    if (filters.isEmpty) plan
    else plan.transform { case scan: FileSourceScanExec =>
      val others = filters.filterNot(f => scan.dataFilters.exists(_.semanticEquals(f)))
      def more = scan.copy(dataFilters = scan.dataFilters ++ others)
      try if (scan.isInstanceOf[CountedScan]) new SieveScan(more) else more
      catch { case _: LinkageError => scan }
    }
}
