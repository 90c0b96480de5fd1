package org.apache.spark.sql.sieve.formats

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.types.StructType

/**
 * The length and the modification time of a file. At least one of the two numbers changes whenever the rows of a file
 * change. `FileSlices` documents both numbers for a file slice.
 */
final case class State(length: Long, modified: Long)

/**
 * A file or file slice that an index entry describes. `shown` is the state whose rows the reader shows, or None if that
 * state cannot be determined. If the reader shows only some rows of the location, `written` is the state with all rows.
 */
final case class Location(path: Path, shown: Option[State], written: Option[State] = None)

/** Finds the locations of listed files. In this class, each file is one location. */
class Locations {
  /** The location of a file in a directory with these partition values. None if the file has no unique name. */
  def of(values: InternalRow, file: FileStatusWithMetadata): Option[Location] =
    Some(Location(file.getPath, Some(State(file.getLen, file.getModificationTime))))

  /** True if queries do not return all rows of a file. An index must not count the rows of such a file. */
  def hidesRows(file: FileStatusWithMetadata): Boolean = false

  /** The number of bytes that a scan reads from a listed file. */
  def bytes(values: InternalRow, file: FileStatusWithMetadata): Long = FileRanges.bytes(file)

  /**
   * Returns a directory that contains only this file. The partition values of the directory are the values of
   * `schema` and one additional value.
   */
  def alone(
      values: InternalRow, file: FileStatusWithMetadata, schema: StructType,
      more: Any): PartitionDirectory =
    PartitionDirectory(new GenericInternalRow((values.toSeq(schema) :+ more).toArray[Any]), Seq(file))
}
