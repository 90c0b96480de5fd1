package org.apache.spark.sql.sieve.formats

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.types.StructType

/**
 * The bytes of a file from `start` (inclusive) to `end` (exclusive). The reader of the format decides which rows belong
 * to these bytes.
 */
final case class ByteRange(start: Long, end: Long) {
  def length: Long = end - start
}

/**
 * A part of a file, as ranges in ascending order. Adjacent ranges are not merged.
 *
 * @param footer the number of bytes at the end of the file that a reader reads each time it opens the file
 */
final case class FilePart(ranges: Seq[ByteRange], footer: Long) {
  /** The number of bytes that a reader reads for this part of a file of `length` bytes. */
  def bytes(length: Long): Long =
    ranges.map(_.length).sum + stretches.count(_.end < length) * footer

  /** The ranges of this part after merging adjacent ranges. A reader opens the file once for each merged range. */
  def stretches: Seq[ByteRange] = FileRanges.joined(ranges, Long.MaxValue)
}

/**
 * Stores in a listing which ranges of each file a scan reads. The ranges are in the metadata of the listed file, in
 * ascending order. If a file lacks this metadata, a scan reads the whole file.
 */
object FileRanges {
  private val key = "sieve_ranges"

  /**
   * True if the scans of a session can read single ranges of files. A plug-in that replaces Spark's operators can
   * recognise an operator only by its class. So in a session with plug-ins, Sieve keeps Spark's own scan operators,
   * which read whole files.
   */
  def areRead(session: SparkSession): Boolean = session.sessionState.columnarRules.isEmpty

  /** The ranges into which a file of `length` bytes is divided if it is cut at these offsets. */
  def between(cuts: Seq[Long], length: Long): Seq[ByteRange] =
    (0L +: cuts).zip(cuts :+ length).map { case (start, end) => ByteRange(start, end) }

  def of(file: FileStatusWithMetadata): Option[Seq[ByteRange]] = part(file).map(_.ranges)

  def restricted(file: FileStatusWithMetadata, part: FilePart): FileStatusWithMetadata =
    file.copy(metadata = file.metadata + (key -> part))

  private def part(file: FileStatusWithMetadata): Option[FilePart] =
    file.metadata.get(key).map(_.asInstanceOf[FilePart])

  /** The metadata of a file without the ranges. */
  def others(file: FileStatusWithMetadata): Map[String, Any] = file.metadata - key

  /** The number of bytes that a scan reads from the file. */
  def bytes(file: FileStatusWithMetadata): Long = part(file).fold(file.getLen)(_.bytes(file.getLen))

  /**
   * Merges adjacent ranges if the merged range has at most `most` bytes. Ranges that are already longer than `most`
   * bytes are not divided.
   */
  def joined(ranges: Seq[ByteRange], most: Long): Seq[ByteRange] =
    ranges.foldLeft(List.empty[ByteRange]) {
      case (last :: before, next) if last.end == next.start && next.end - last.start <= most =>
        ByteRange(last.start, next.end) :: before
      case (found, next) => next :: found
    }.reverse
}

/**
 * A listing that can restrict files to ranges. Only scans that can read single ranges of a file use the restricted
 * listing.
 */
trait RangeListing extends FileIndex {
  /** The listing that this listing replaces. */
  def delegate: FileIndex

  def listRanges(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory]

  /** The same listing, in which files are restricted to ranges. */
  def inRanges: FileIndex = new InRanges(this)
}

private class InRanges(of: RangeListing) extends FileIndex {
  override def listFiles(
      partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    of.listRanges(partitionFilters, dataFilters)
  override def rootPaths: Seq[Path] = of.rootPaths
  override def inputFiles: Array[String] = of.inputFiles
  override def refresh(): Unit = of.refresh()
  override def sizeInBytes: Long = of.sizeInBytes
  override def partitionSchema: StructType = of.partitionSchema
  override def metadataOpsTimeNs: Option[Long] = of.metadataOpsTimeNs
}
