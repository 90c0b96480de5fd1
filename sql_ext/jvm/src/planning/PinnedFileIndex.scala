package org.apache.spark.sql.sieve

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.types.StructType

/** These files, and no others. */
class PinnedFileIndex(
    of: FileIndex, files: Seq[PartitionDirectory], override val partitionSchema: StructType)
    extends FileIndex {
  override def rootPaths: Seq[Path] = of.rootPaths
  override def listFiles(p: Seq[Expression], d: Seq[Expression]): Seq[PartitionDirectory] = files
  override def inputFiles: Array[String] = files.flatMap(_.files.map(_.getPath.toString)).toArray
  override def refresh(): Unit = ()
  override def sizeInBytes: Long = files.flatMap(_.files.map(_.getLen)).sum
}

object PinnedFileIndex {
  private val ignoring = Seq("ignoreCorruptFiles", "ignoreMissingFiles")

  /** The relation over these files alone, read as a query would, except that no error is ignored. */
  def over(
      relation: HadoopFsRelation, files: Seq[PartitionDirectory], partitionSchema: StructType,
      options: Map[String, String] = Map.empty): HadoopFsRelation = relation.copy(
    location = new PinnedFileIndex(relation.location, files, partitionSchema),
    partitionSchema = partitionSchema, bucketSpec = None,
    options = relation.options.filterNot { case (k, _) => ignoring.exists(_.equalsIgnoreCase(k)) } ++
      ignoring.map(_ -> "false") ++ options)(relation.sparkSession)
}
