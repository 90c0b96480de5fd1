package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, PartitionDirectory}

/** A scan that can read ranges of files. The arguments of `FileSourceScanExec` differ between releases of Spark. */
class SieveScan(of: FileSourceScanExec)
    extends FileSourceScanExec(
      of.relation, of.output, of.requiredSchema, of.partitionFilters, of.optionalBucketSet,
      of.optionalNumCoalescedBuckets, of.dataFilters, of.tableIdentifier, of.disableBucketedScan)
    with CountedScan {
  @transient override lazy val selectedPartitions: Array[PartitionDirectory] = listed.selectedPartitions
  override protected def selectedFiles: Seq[(InternalRow, FileStatusWithMetadata)] =
    dynamicallySelectedPartitions.toSeq.flatMap(p => p.files.map((p.values, _)))
}
