package org.apache.spark.sql.sieve

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.types.StructType

/** These files, and no others. */
class PinnedFileIndex(
    of: FileIndex, wanted: Seq[PartitionDirectory], override val partitionSchema: StructType)
    extends FileIndex {
  override def rootPaths: Seq[Path] = of.rootPaths
  override def listFiles(p: Seq[Expression], d: Seq[Expression]): Seq[PartitionDirectory] = wanted
  override def inputFiles: Array[String] = wanted.flatMap(_.files.map(_.getPath.toString)).toArray
  override def refresh(): Unit = ()
  override def sizeInBytes: Long = wanted.flatMap(_.files.map(_.getLen)).sum
}

object PinnedFileIndex {
  private val quiet = Seq("ignoreCorruptFiles", "ignoreMissingFiles")

  /** The relation over these files alone, read as a query would, but no errors passed over. */
  def over(
      relation: HadoopFsRelation, wanted: Seq[PartitionDirectory], partitionSchema: StructType,
      more: Map[String, String] = Map.empty): HadoopFsRelation = {
    val options =
      relation.options.filterNot { case (k, _) => quiet.exists(_.equalsIgnoreCase(k)) } ++
        quiet.map(_ -> "false") ++ more
    relation.copy(
      location = new PinnedFileIndex(relation.location, wanted, partitionSchema),
      partitionSchema = partitionSchema, bucketSpec = None, options = options)(relation.sparkSession)
  }
}
