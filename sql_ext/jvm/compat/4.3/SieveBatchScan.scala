package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.execution.datasources.v2.BatchScanExec

/** A copy of a scan. The constructor has the same arguments as Spark's own scan in this release of Spark. */
class SieveBatchScan(of: BatchScanExec)
    extends BatchScanExec(of.output, of.scan, of.runtimeFilters, of.ordering, of.table, of.keyGroupedPartitioning)
