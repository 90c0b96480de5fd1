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
 * Finds the offsets at which files can be cut into ranges: between row groups of Parquet, or stripes of ORC.
 * A reader assigns a row group to the split that contains its middle, and a stripe to the split that contains
 * its start. So a cut at the start of a group separates all groups before the cut from those after it. Text
 * files need no look-up: a line belongs to the split in which it begins.
 */
class FileCuts(session: Compat.Session, relation: HadoopFsRelation) {
  private val conf = session.sessionState.newHadoopConfWithOptions(relation.options)
  private lazy val codecs = new CompressionCodecFactory(conf)

  /**
   * The cuts of each file. The cuts are empty if the file has one row group, if its footer cannot be
   * read, or if its format is text. A file that is always read whole has None.
   *
   * @param bytes the minimum bytes of a range. A footer above a limit raises the minimum to the footer's
   * size, because a scan reads the footer again for each range
   */
  def of(files: Seq[FileStatusWithMetadata], bytes: Long): Seq[Option[FileCuts.Cuts]] = {
    val canCut = files.map(isCut)
    val read = FileCuts.readers.get(Fingerprint.format(relation))
    if (read.isEmpty || !canCut.contains(true)) canCut.map(if (_) Some(FileCuts.Cuts(Nil, 0)) else None)
    else {
      // Reading a smaller footer costs less than the opening, which Spark takes for 4 MB.
      val (sent, layout, large) = (new SerializableConfiguration(conf), read.get, 1L << 20)
      val inputs = files.zip(canCut).map { case (file, can) => (file.getPath.toString, file.getLen, can) }
      val context = session.sparkContext
      context.parallelize(inputs, math.min(inputs.size, context.defaultParallelism)).map {
        case (path, length, true) =>
          val (starts, footer) = Try(layout(new Path(path), sent.value)).getOrElse((Nil, 0L))
          val least = if (footer > large) math.max(footer, bytes) else bytes
          Some(FileCuts.Cuts(FileCuts.spaced(starts, length, least), footer))
        case _ => None
      }.collect().toSeq
    }
  }

  /** Whether readers split a file, given its format and this session. */
  private def isCut(file: FileStatusWithMetadata): Boolean =
    FileRanges.areRead(session) && TableFormat.of(relation) == PlainFiles &&
      relation.fileFormat.isSplitable(relation.sparkSession, relation.options, file.getPath) &&
      !(WholeRecords.isText(relation) && isCompressed(file.getPath))

  private def isCompressed(path: Path): Boolean =
    codecs.getCodec(path) != null || FileCuts.isZstd(path)
}

object FileCuts {
  /**
   * The ascending offsets at which a file is cut, and the bytes of its footer; 0 if it has no footer.
   */
  final case class Cuts(offsets: Seq[Long], footer: Long)

  /** Reads the start offsets of the row groups in a file, and the bytes of its footer. */
  private type Layout = (Path, Configuration) => (Seq[Long], Long)
  private val readers = Map[String, Layout]("parquet" -> rowGroups, "orc" -> stripes)

  /**
   * Whether a path has an ending without a codec in Hadoop. Spark 4.1 decompresses such files, and
   * fails on two splits of a file.
   */
  def isZstd(path: Path): Boolean = path.getName.toLowerCase(Locale.ROOT).endsWith(".zstd")

  private def rowGroups(path: Path, conf: Configuration): (Seq[Long], Long) = {
    val file = HadoopInputFile.fromPath(path, conf)
    // Without options, the reader would read Hadoop's configuration files again for each file.
    val reader = ParquetFileReader.open(file, HadoopReadOptions.builder(conf, path).build())
    val starts =
      try reader.getRowGroups.asScala.filter(_.getRowCount > 0).map(_.getStartingPos).toSeq
      finally reader.close()
    // The footer's length and the format's magic bytes follow the footer.
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

  /** The start offsets at which to cut a file so that each range has at least `bytes` bytes. */
  private def spaced(starts: Seq[Long], length: Long, bytes: Long): Seq[Long] =
    starts.sorted.drop(1).foldLeft(List(0L)) {
      case (cuts, start) if start - cuts.head >= bytes && length - start >= bytes => start :: cuts
      case (cuts, _) => cuts
    }.reverse.drop(1)
}
