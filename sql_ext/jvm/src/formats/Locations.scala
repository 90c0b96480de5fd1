package org.apache.spark.sql.sieve.formats

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.types.StructType

/**
 * The length and the modification time of a file. Whenever the rows of a file change, the file's length or modification
 * time changes. `HudiSlices` documents the length and time of a file slice.
 */
final case class State(length: Long, modified: Long)

/**
 * A file or file slice that an index entry describes. `shown` is the state with exactly the rows that the reader
 * returns; None if this state is unknown. If the reader returns only some rows of the location, `written` is the state
 * that contains all rows.
 */
final case class Location(path: Path, shown: Option[State], written: Option[State] = None)

/** Finds the locations of listed files. This class treats each file as one location. */
class Locations {
  /**
   * The location of a file in a directory with the partition values `values`. Returns None if the file has no unique
   * name.
   */
  def of(values: InternalRow, file: FileStatusWithMetadata): Option[Location] =
    Some(Location(file.getPath, Some(State(file.getLen, file.getModificationTime))))

  /** True if queries leave out some rows of a file. An index must not count the rows of this file. */
  def hidesRows(file: FileStatusWithMetadata): Boolean = false

  /** The number of bytes that a scan reads for a listed file. */
  def bytes(values: InternalRow, file: FileStatusWithMetadata): Long = FileRanges.bytes(file)

  /**
   * Returns a directory that contains only this file. The directory's partition values are `values`, followed by the
   * value `more`. `schema` describes the columns of `values`.
   */
  def alone(
      values: InternalRow, file: FileStatusWithMetadata, schema: StructType,
      more: Any): PartitionDirectory =
    PartitionDirectory(new GenericInternalRow((values.toSeq(schema) :+ more).toArray[Any]), Seq(file))
}
