package org.apache.spark.sql.sieve

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.types.StructType

/**
 * Two numbers of which one is another when the rows of a location may be. Of a file they are length
 * and time; of a file slice `FileSlices` tells.
 */
final case class State(length: Long, modified: Long)

/**
 * What an index points at: its path, and the state whose rows the reader shows, None if that cannot be
 * told. Where the reader passes over some of what was written there, `written` is the state with all.
 */
final case class Location(path: Path, shown: Option[State], written: Option[State] = None)

/** What the files in a relation's listing are: here files, each read by itself. */
class Locations {
  /** The location of a file in a directory with these values; None for what has no such name. */
  def of(values: InternalRow, file: FileStatusWithMetadata): Option[Location] =
    Some(Location(file.getPath, Some(State(file.getLen, file.getModificationTime))))

  /** The file in a directory of its own, whose values are those of `schema` and one more. */
  def alone(
      values: InternalRow, file: FileStatusWithMetadata, schema: StructType,
      more: Any): PartitionDirectory =
    PartitionDirectory(new GenericInternalRow((values.toSeq(schema) :+ more).toArray[Any]), Seq(file))

  /**
   * What to list in place of a file, to have no rows but those that its location has been given since it
   * had some length and time. With what was known of it then they make all that it holds now, or more.
   * None where it has not grown so. If `allRows` then all that had ever been written to it was known,
   * hidden rows among them; else what it showed.
   */
  def grown(
      values: InternalRow, file: FileStatusWithMetadata, length: Long, modified: Long,
      allRows: Boolean): Option[(InternalRow, FileStatusWithMetadata)] = None
}

object Locations {
  def of(relation: HadoopFsRelation): Locations =
    if (Hudi.is(relation.location)) new FileSlices(relation) else new Locations
}
