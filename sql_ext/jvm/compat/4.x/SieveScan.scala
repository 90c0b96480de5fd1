package org.apache.spark.sql.sieve

import org.apache.spark.sql.execution.{FileSourceScanExec, ScanFileListing}

/** Spark's scan with two metrics more; the arguments are those of its constructor in this line of Spark. */
class SieveScan(of: FileSourceScanExec)
    extends FileSourceScanExec(
      of.relation, of.stream, of.output, of.requiredSchema, of.partitionFilters, of.optionalBucketSet,
      of.optionalNumCoalescedBuckets, of.dataFilters, of.tableIdentifier, of.disableBucketedScan)
    with CountedScan {
  @transient override lazy val selectedPartitions: ScanFileListing = listed.selectedPartitions
}
