package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.{FileSourceScanExec, ScanFileListing}
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata

/** A scan that can read ranges of files. The arguments of `FileSourceScanExec` differ between releases of Spark. */
class SieveScan(of: FileSourceScanExec)
    extends FileSourceScanExec(
      of.relation, of.stream, of.output, of.requiredSchema, of.partitionFilters, of.optionalBucketSet,
      of.optionalNumCoalescedBuckets, of.dataFilters, of.tableIdentifier, of.disableBucketedScan, of.markedForSingleTaskExecution)
    with CountedScan {
  @transient override lazy val selectedPartitions: ScanFileListing = listed.selectedPartitions
  override protected def selectedFiles: Seq[(InternalRow, FileStatusWithMetadata)] =
    dynamicallySelectedPartitions.filePartitionIterator.flatMap(p => p.files.map((p.values, _))).toSeq
}
