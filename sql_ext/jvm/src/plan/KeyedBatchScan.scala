package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.expressions.{Attribute, DynamicPruning, DynamicPruningSubquery, Expression}
import org.apache.spark.sql.catalyst.expressions.{Predicate, UnaryExpression, Unevaluable}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec

/**
 * Spark's node for a DataSource V2 scan, with additional run-time filters. Spark's own node passes one kind of keys to
 * the scan: the keys of a broadcast for a single column. This node also passes keys for a field, for an expression or
 * for several columns. In addition, this node passes the results of scalar subqueries, and keys that a job has read.
 */
class KeyedBatchScan(of: BatchScanExec) extends SieveBatchScan(of) {
  /** Waits for the results of the scan's subqueries. See `CountedScan.waitForSubqueries`. */
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

  /** Copies Spark's own scan, and creates an object of this class from the copy. See `CountedScan.makeCopy`. */
  override def makeCopy(arguments: Array[AnyRef]): SparkPlan = {
    def copied = copy().makeCopy(arguments) match { case batch: BatchScanExec => new KeyedBatchScan(batch) }
    // A new node takes its session from the thread's active session.
    val made = if (session == null) copied else session.withActive(copied)
    made.copyTagsFrom(this)
    made
  }

  override def clone(): SparkPlan = makeCopy(productIterator.map(_.asInstanceOf[AnyRef]).toArray)
}

object KeyedBatchScan {
  /** Adds run-time filters on indexed columns to a scan. Ignores all other filters. */
  def apply(batch: BatchScanExec, scan: PrunedScan, filters: Seq[Expression]): SparkPlan =
    RunTimeFilters.awaited(scan.index, filters) match {
      case Nil => batch
      case more =>
        val made = more.map {
          case keys: DynamicPruningSubquery if !keys.pruningKey.isInstanceOf[Attribute] => KeysOfExpression(keys)
          case other => other
        }
        // A join without a shuffle pairs the partitions of two scans by position. Spark keeps the positions only if
        // Spark itself passes a filter's values to the scan, so the scan gets no other filters.
        val safe = if (batch.keyGroupedPartitioning.isDefined) made.diff(own(made)) else made
        val keyed = batch.copy(runtimeFilters = batch.runtimeFilters ++ safe)
        if (own(safe).isEmpty) keyed else new KeyedBatchScan(keyed)
    }

  /** The filters whose values Spark itself does not pass to scans. */
  private def own(filters: Seq[Expression]): Seq[Expression] = filters.filterNot(_.isInstanceOf[DynamicPruning])
}

/**
 * A filter on a field, on an expression or on several columns. The filter's values are the keys of a broadcast. Spark
 * passes a scan only the keys for a single column, and would log a warning for any other filter.
 */
case class KeysOfExpression(child: Expression) extends UnaryExpression with Predicate with Unevaluable {
  override protected def withNewChildInternal(newChild: Expression): KeysOfExpression = copy(child = newChild)
}

object KeysOfExpression {
  def without(filter: Expression): Expression = filter match {
    case KeysOfExpression(own) => own
    case other => other
  }
}
