package org.apache.spark.sql.sieve.plan

import scala.collection.mutable
import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.sieve.ask.Counters
import org.apache.spark.sql.sieve.base.Reason
import org.apache.spark.sql.sieve.base.Reason.Reason

/** Records why scans that could use join keys get no keys, for Sieve's counters and for EXPLAIN SIEVE. */
object JoinRefusals {
  private val explained = new ThreadLocal[mutable.Buffer[(AttributeSet, Reason)]]

  def note(scan: LogicalPlan, reason: Reason): Unit = {
    Counters.refused(reason)
    Option(explained.get).foreach(_ += scan.outputSet -> reason)
  }

  /** Runs `planning`. Returns its result, and a function that returns the reasons that were recorded for a scan. */
  def during[A](planning: => A): (A, SparkPlan => Set[Reason]) = {
    val noted = mutable.Buffer.empty[(AttributeSet, Reason)]
    explained.set(noted)
    try {
      val planned = planning
      (planned, scan => noted.collect {
        case (columns, reason) if scan.output.exists(columns.contains) => reason
      }.toSet)
    } finally explained.remove()
  }
}
