package org.apache.spark.sql.sieve.plan

import org.apache.hadoop.fs.{FileStatus, LocatedFileStatus, Path}
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.sieve.formats.{ByteRange, FileRanges}

/**
 * The tasks of a scan in which some files are restricted to ranges.
 *
 * {{{
 * kept ranges of a file   [0, 16)  [16, 32)            [64, 80)
 * read by a task as       [0, 32)                      [64, 80)
 * }}}
 *
 * Each task begins and ends at the bounds of ranges, because the index describes the rows that a reader returns for
 * each range. A task can merge adjacent ranges, because a reader returns the same rows for the merged range as for its
 * parts. Spark itself distributes the bytes of a scan over all cores. If a scan reads only a few bytes, starting a task
 * on every core often takes longer than reading the bytes. So this object groups ranges into tasks of up to `taskBytes`
 * bytes. Spark's setting `spark.sql.files.maxPartitionBytes` limits the size of tasks, too.
 */
class RangeTasks(session: SparkSession, isSplitable: Path => Boolean) {
  private val taskBytes = 8L << 20
  private type Listed = Seq[(InternalRow, FileStatusWithMetadata)]

  /** Returns the tasks of a scan. The number of tasks is at most the number that Spark would create for whole files. */
  def of(files: Listed): Seq[FilePartition] = {
    val most = Seq(1L,
      sparks(files.map { case (_, file) => FileRanges.bytes(file) }),
      math.min(taskBytes, session.sessionState.conf.filesMaxPartitionBytes)).max
    val pieces = sorted(files.flatMap { case (values, file) =>
      parts(file, FileRanges.of(file), most).map(piece(values, file, _))
    })
    val whole = sparks(files.map { case (_, file) => file.getLen })
    val tasks = packed(sorted(files.flatMap { case (values, file) =>
      parts(file, None, whole).map(piece(values, file, _))
    }), whole).size
    // Spark adds a cost in bytes each time a task opens a file. Tasks that read ranges can open files more often than
    // tasks that read whole files. So this loop raises the task size until the number of tasks is at most the number
    // for whole files. The steps are small, because doubling the size could halve the number of tasks. The cost of
    // opening a file is a setting without an upper limit, so the loop also ends if the task size overflows.
    val sizes = Iterator.iterate(most)(size => size + size / 8 + 1).takeWhile(_ > 0)
    sizes.map(packed(pieces, _)).find(_.size <= tasks).getOrElse(packed(pieces, Long.MaxValue))
  }

  /** The split size, in bytes, that Spark would use for files of these lengths. */
  private def sparks(lengths: Seq[Long]): Long = FilePartition.maxSplitBytes(
    session, Seq(PartitionDirectory(InternalRow.empty, lengths.map(length =>
      FileStatusWithMetadata(new FileStatus(length, false, 0, 0, 0, new Path("/")))))))

  private def parts(
      file: FileStatusWithMetadata, ranges: Option[Seq[ByteRange]], most: Long): Seq[ByteRange] =
    ranges.fold {
      if (!isSplitable(file.getPath)) Seq(ByteRange(0, file.getLen))
      else (0L until file.getLen by most).map(start =>
        ByteRange(start, math.min(start + most, file.getLen)))
    }(FileRanges.joined(_, most))

  private def piece(values: InternalRow, file: FileStatusWithMetadata, range: ByteRange): PartitionedFile =
    PartitionedFile(
      values, SparkPath.fromPath(file.getPath), range.start, range.length,
      hosts(file.fileStatus, range), file.getModificationTime, file.getLen, FileRanges.others(file))

  /** The hosts of the block that contains the largest part of a range. */
  private def hosts(file: FileStatus, range: ByteRange): Array[String] = file match {
    case located: LocatedFileStatus if located.getBlockLocations.nonEmpty =>
      located.getBlockLocations.maxBy { block =>
        math.min(range.end, block.getOffset + block.getLength) - math.max(range.start, block.getOffset)
      }.getHosts
    case _ => Array.empty
  }

  private def sorted(pieces: Seq[PartitionedFile]): Seq[PartitionedFile] = pieces.sortBy(-_.length)

  private def packed(pieces: Seq[PartitionedFile], most: Long): Seq[FilePartition] =
    FilePartition.getFilePartitions(session, pieces, most)
}
