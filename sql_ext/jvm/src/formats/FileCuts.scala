package org.apache.spark.sql.sieve.formats

import java.util.Locale
import scala.jdk.CollectionConverters._
import scala.util.Try
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.io.compress.CompressionCodecFactory
import org.apache.orc.OrcFile
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.bytes.BytesUtils
import org.apache.parquet.hadoop.{ParquetFileReader, ParquetFileWriter}
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, HadoopFsRelation}
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.util.SerializableConfiguration

/**
 * Finds the offsets at which files can be cut into ranges: in Parquet files between row groups, and in ORC files
 * between stripes. A reader assigns a row group to the split that contains the row group's middle. A reader assigns a
 * stripe to the split that contains the stripe's start. So a cut at the start of a row group separates the earlier row
 * groups from this and all later row groups. Text files can be cut anywhere, because a line belongs to the split in
 * which the line begins.
 */
class FileCuts(session: Compat.Session, relation: HadoopFsRelation) {
  private val conf = session.sessionState.newHadoopConfWithOptions(relation.options)
  private lazy val codecs = new CompressionCodecFactory(conf)

  /**
   * Returns the cuts of each file. A file has no cuts if it consists of a single row group or stripe, or if its format
   * is a text format. If a footer cannot be read, the file is cut at the table format's own splits, if any. The result
   * is None for a file that scans always read whole.
   *
   * @param bytes the minimum size of a range, in bytes. A large footer raises this minimum to the footer's size,
   *              because a scan reads the footer again for each range
   */
  def of(files: Seq[FileStatusWithMetadata], bytes: Long): Seq[Option[FileCuts.Cuts]] = {
    val format = TableFormat.of(relation)
    val layouts = files.map(file => format.layout(relation, file).filter(_ => isCut(file)))
    val readers = layouts.map(_.flatMap(FileCuts.readers.get))
    if (readers.forall(_.isEmpty)) layouts.map(_.map(_ => FileCuts.Cuts(Nil, 0)))
    else {
      // Spark assumes that opening a file takes as long as reading 4 MB. By comparison, reading a footer of less than 1
      // MB takes little time.
      val (sent, large) = (new SerializableConfiguration(conf), 1L << 20)
      val inputs = files.zip(readers).map { case (file, read) =>
        (file.getPath.toString, file.getLen, read, format.splits(file).map(_.toSet))
      }
      val context = session.sparkContext
      val found = context.parallelize(inputs, math.min(inputs.size, context.defaultParallelism)).map {
        case (path, length, Some(layout), splits) =>
          // Hadoop's file systems may be unable to open a file that the table format can open. The file is then cut at
          // the format's own splits.
          val (starts, footer) = Try(layout(new Path(path), sent.value))
            .getOrElse((splits.fold(Seq.empty[Long])(_.toSeq.sorted), 0L))
          val least = if (footer > large) math.max(footer, bytes) else bytes
          Some(FileCuts.Cuts(FileCuts.spaced(starts.filter(at => splits.forall(_(at))), length, least), footer))
        case _ => None
      }.collect().toSeq
      found.zip(layouts).map { case (cuts, layout) => cuts.orElse(layout.map(_ => FileCuts.Cuts(Nil, 0))) }
    }
  }

  /** True if scans in this session can read single ranges of the file. */
  private def isCut(file: FileStatusWithMetadata): Boolean =
    FileRanges.areRead(session) && !(WholeRecords.isText(relation) && isCompressed(file.getPath))

  private def isCompressed(path: Path): Boolean =
    codecs.getCodec(path) != null || FileCuts.isZstd(path)
}

object FileCuts {
  /**
   * The offsets at which a file is cut, in ascending order, and the size of the file's footer in bytes. The size is 0
   * for a file without a footer.
   */
  final case class Cuts(offsets: Seq[Long], footer: Long)

  /**
   * A function that returns the start offsets of the row groups in a file, and the size of the file's footer in bytes.
   */
  private type Layout = (Path, Configuration) => (Seq[Long], Long)
  private val readers = Map[String, Layout]("parquet" -> rowGroups, "orc" -> stripes)

  /**
   * True if a path ends in `.zstd`, an extension for which Hadoop has no codec. Spark 4.1 decompresses `.zstd` files,
   * but fails if a file has two splits.
   */
  def isZstd(path: Path): Boolean = path.getName.toLowerCase(Locale.ROOT).endsWith(".zstd")

  private def rowGroups(path: Path, conf: Configuration): (Seq[Long], Long) = {
    val file = HadoopInputFile.fromPath(path, conf)
    // Without explicit options, the reader would load Hadoop's configuration files again for each file.
    val reader = ParquetFileReader.open(file, HadoopReadOptions.builder(conf, path).build())
    val starts =
      try reader.getRowGroups.asScala.filter(_.getRowCount > 0).map(_.getStartingPos).toSeq
      finally reader.close()
    // In the file, the footer is followed by the footer's length and by the magic bytes of the format.
    val end = ParquetFileWriter.MAGIC.length + Integer.BYTES
    val in = file.newStream()
    try {
      in.seek(file.getLength - end)
      (starts, BytesUtils.readIntLittleEndian(in).toLong + end)
    } finally in.close()
  }

  private def stripes(path: Path, conf: Configuration): (Seq[Long], Long) = {
    val reader = OrcFile.createReader(path, OrcFile.readerOptions(conf))
    try {
      val (end, tail) = (reader.getFileTail.getPostscript, reader.getFileTail.getPostscriptLength + 1)
      (reader.getStripes.asScala.map(_.getOffset).toSeq, end.getMetadataLength + end.getFooterLength + tail)
    } finally reader.close()
  }

  /** Returns the offsets at which a file is cut. Each range between these offsets has at least `bytes` bytes. */
  private def spaced(starts: Seq[Long], length: Long, bytes: Long): Seq[Long] =
    starts.sorted.drop(1).foldLeft(List(0L)) {
      case (cuts, start) if start - cuts.head >= bytes && length - start >= bytes => start :: cuts
      case (cuts, _) => cuts
    }.reverse.drop(1)
}
