package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.expressions.{DynamicPruning, Expression}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec

/**
 * Spark's scan of the second data source interface with more run-time filters. Spark hands only the keys of broadcasts
 * to such a scan. This node also hands over the results of scalar subqueries and the keys that a job has read.
 */
class KeyedBatchScan(of: BatchScanExec) extends SieveBatchScan(of) {
  /** See `CountedScan.waitForSubqueries`. */
  override protected def waitForSubqueries(): Unit = {
    val start = System.nanoTime
    val haveCome = FetchedKeys.come(expressions)
    scan match {
      case pruned: PrunedScan =>
        pruned.index.waited(System.nanoTime - start)
        pruned.received(RunTimeFilters.values(pruned.index, KeyedBatchScan.own(runtimeFilters)), !haveCome)
      case _ =>
    }
  }

  /** Spark copies a node with the constructor arguments of its class, and only Spark's own scan has these arguments. */
  override def makeCopy(arguments: Array[AnyRef]): SparkPlan = {
    def copied = copy().makeCopy(arguments) match { case batch: BatchScanExec => new KeyedBatchScan(batch) }
    // A new node gets the session of its thread.
    val made = if (session == null) copied else session.withActive(copied)
    made.copyTagsFrom(this)
    made
  }

  override def clone(): SparkPlan = makeCopy(productIterator.map(_.asInstanceOf[AnyRef]).toArray)
}

object KeyedBatchScan {
  /** A scan with more run-time filters, of which it takes those on indexed columns. */
  def apply(batch: BatchScanExec, scan: PrunedScan, filters: Seq[Expression]): SparkPlan =
    RunTimeFilters.awaited(scan.index, filters) match {
      case Nil => batch
      case more =>
        val keyed = batch.copy(runtimeFilters = batch.runtimeFilters ++ more)
        if (own(more).isEmpty) keyed else new KeyedBatchScan(keyed)
    }

  /** The filters whose values Spark does not hand to scans. */
  private def own(filters: Seq[Expression]): Seq[Expression] = filters.filterNot(_.isInstanceOf[DynamicPruning])
}
