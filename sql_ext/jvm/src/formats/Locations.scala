package org.apache.spark.sql.sieve.formats

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.types.StructType

/**
 * Two numbers that change whenever the rows of a location may change: for a file, its length and time;
 * for a file slice, see `FileSlices`.
 */
final case class State(length: Long, modified: Long)

/**
 * The target of an index entry: a path, and the state whose rows the reader shows, or None if the state
 * cannot be determined. If the reader shows only a part of the rows, `written` is the state with all
 * rows.
 */
final case class Location(path: Path, shown: Option[State], written: Option[State] = None)

/** The locations in the listing of a relation; in this class, each file is one location. */
class Locations {
  /**
   * The location of a file in a directory with these values; None if the file has no name of its own.
   */
  def of(values: InternalRow, file: FileStatusWithMetadata): Option[Location] =
    Some(Location(file.getPath, Some(State(file.getLen, file.getModificationTime))))

  /** The bytes to read of a listed file. */
  def bytes(values: InternalRow, file: FileStatusWithMetadata): Long = FileRanges.bytes(file)

  /**
   * The file in a separate directory. The directory's values are the values of `schema` and one additional
   * value.
   */
  def alone(
      values: InternalRow, file: FileStatusWithMetadata, schema: StructType,
      more: Any): PartitionDirectory =
    PartitionDirectory(new GenericInternalRow((values.toSeq(schema) :+ more).toArray[Any]), Seq(file))
}
