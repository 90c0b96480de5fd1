package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.execution.datasources.v2.BatchScanExec

/** A copy of Spark's scan. In other releases of Spark, the constructor of `BatchScanExec` takes other arguments. */
class SieveBatchScan(of: BatchScanExec)
    extends BatchScanExec(of.output, of.scan, of.runtimeFilters, of.ordering, of.table, of.keyGroupedPartitioning)
