package org.apache.spark.sql.sieve

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.collection.BitSet

/** Spark's scan, which counts two things more; Spark copies a node by the arguments of its class. */
class SieveScan(
    relation: HadoopFsRelation, stream: Option[SparkDataStream], output: Seq[Attribute],
    schema: StructType, partitionFilters: Seq[Expression], buckets: Option[BitSet],
    coalesced: Option[Int], dataFilters: Seq[Expression], table: Option[TableIdentifier],
    unbucketed: Boolean, singleTask: Boolean)
    extends FileSourceScanExec(
      relation, stream, output, schema, partitionFilters, buckets, coalesced, dataFilters, table,
      unbucketed, singleTask)
    with CountedScan

object SieveScan extends CountedScans {
  override protected def kind: Class[_ <: FileSourceScanExec] = classOf[SieveScan]
  override protected def of(scan: FileSourceScanExec): FileSourceScanExec = new SieveScan(
    scan.relation, scan.stream, scan.output, scan.requiredSchema, scan.partitionFilters,
    scan.optionalBucketSet, scan.optionalNumCoalescedBuckets, scan.dataFilters,
    scan.tableIdentifier, scan.disableBucketedScan, scan.markedForSingleTaskExecution)
}
