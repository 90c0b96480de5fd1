package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.execution.datasources.v2.BatchScanExec

/**
 * A copy of Spark's scan node. `KeyedBatchScan` extends this class. The arguments of `BatchScanExec` differ between
 * releases of Spark.
 */
class SieveBatchScan(of: BatchScanExec)
    extends BatchScanExec(of.output, of.scan, of.runtimeFilters, of.ordering, of.table, of.keyGroupedPartitioning)
