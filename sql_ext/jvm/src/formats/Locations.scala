package org.apache.spark.sql.sieve.formats

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.types.StructType

/**
 * Two numbers that differ whenever the rows of a location may: of a file its length and time; of a file
 * slice see `FileSlices`.
 */
final case class State(length: Long, modified: Long)

/**
 * What an index points at: its path, and the state whose rows the reader shows, None if that cannot be
 * determined. Where it shows them only in part, `written` is the state with all that was written.
 */
final case class Location(path: Path, shown: Option[State], written: Option[State] = None)

/** The locations of the files in a relation's listing: here each file is one. */
class Locations {
  /** The location of a file in a directory with these values; None where it has no name of its own. */
  def of(values: InternalRow, file: FileStatusWithMetadata): Option[Location] =
    Some(Location(file.getPath, Some(State(file.getLen, file.getModificationTime))))

  /** The bytes to read of a listed file. */
  def bytes(values: InternalRow, file: FileStatusWithMetadata): Long = FileRanges.bytes(file)

  /** The file in a directory of its own, whose values are those of `schema` and one more. */
  def alone(
      values: InternalRow, file: FileStatusWithMetadata, schema: StructType,
      more: Any): PartitionDirectory =
    PartitionDirectory(new GenericInternalRow((values.toSeq(schema) :+ more).toArray[Any]), Seq(file))
}
