package org.apache.spark.sql.sieve.formats

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.sieve.base.SieveException
import org.apache.spark.sql.types.StructType

/** A listing that always consists of the given files and ranges of files. */
class PinnedFileIndex(
    override val delegate: FileIndex, files: Seq[PartitionDirectory], override val partitionSchema: StructType)
    extends RangeListing {
  val hasRanges: Boolean = files.exists(_.files.exists(FileRanges.of(_).nonEmpty))

  override def rootPaths: Seq[Path] = delegate.rootPaths
  override def listRanges(p: Seq[Expression], d: Seq[Expression]): Seq[PartitionDirectory] = files
  /**
   * Fails if a file is restricted to ranges, because Spark's own scan would read the whole file once for each range.
   */
  override def listFiles(p: Seq[Expression], d: Seq[Expression]): Seq[PartitionDirectory] =
    if (!hasRanges) files
    else throw new SieveException("SIEVE_RANGES_UNREADABLE",
      "parts of files cannot be read in this session, because a plug-in replaces Spark's file scans; " +
        "run the statement in a session without columnar plug-ins", state = "0A000")
  override def inputFiles: Array[String] = files.flatMap(_.files.map(_.getPath.toString)).toArray
  override def refresh(): Unit = ()
  override def sizeInBytes: Long = files.flatMap(_.files.map(FileRanges.bytes)).sum
}

object PinnedFileIndex {
  private val ignoring = Seq("ignoreCorruptFiles", "ignoreMissingFiles")

  /**
   * Returns a relation of exactly these files. Scans of this relation read the files in the same way as a query, but
   * never ignore corrupt or missing files.
   */
  def over(
      relation: HadoopFsRelation, files: Seq[PartitionDirectory], partitionSchema: StructType,
      options: Map[String, String] = Map.empty): HadoopFsRelation = relation.copy(
    location = new PinnedFileIndex(relation.location, files, partitionSchema),
    partitionSchema = partitionSchema, bucketSpec = None,
    options = relation.options.filterNot { case (k, _) => ignoring.exists(_.equalsIgnoreCase(k)) } ++
      ignoring.map(_ -> "false") ++ options)(relation.sparkSession)
}
