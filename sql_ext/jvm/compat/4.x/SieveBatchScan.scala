package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.execution.datasources.v2.BatchScanExec

/** A copy of Spark's scan, with the constructor arguments of this Spark release. */
class SieveBatchScan(of: BatchScanExec)
    extends BatchScanExec(of.output, of.scan, of.runtimeFilters, of.ordering, of.table, of.spjParams)
