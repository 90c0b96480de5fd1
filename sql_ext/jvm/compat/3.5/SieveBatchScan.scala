package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, SortOrder}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution.datasources.v2._
import org.apache.spark.sql.execution.joins._

/** A copy of Spark's scan, with the constructor arguments of this Spark release. */
abstract class SieveBatchScan(of: BatchScanExec)
    extends BatchScanExec(of.output, of.scan, of.runtimeFilters, of.ordering, of.table, of.spjParams) {
  /** Returns a copy by Spark as the subclass. */
  protected def wrapped(copy: BatchScanExec): BatchScanExec

  /** Spark's own scan. */
  protected def unwrapped: BatchScanExec = super.copy()

  /** Spark copies a scan for a join of tables with equal partitions. */
  override def copy(
      output: Seq[AttributeReference], scan: Scan, runtimeFilters: Seq[Expression], ordering: Option[Seq[SortOrder]],
      table: Table, spjParams: StoragePartitionJoinParams): BatchScanExec =
    wrapped(super.copy(output, scan, runtimeFilters, ordering, table, spjParams))
}
