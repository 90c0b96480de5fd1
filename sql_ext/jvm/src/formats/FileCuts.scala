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
import org.apache.spark.sql.sieve.base.{Compat, Policy}
import org.apache.spark.util.SerializableConfiguration

/**
 * Where files can be cut into ranges: between two row groups of Parquet, or stripes of ORC. A reader
 * gives a row group to the split with its middle, and a stripe to the split with its start, so a cut at
 * the start of one leaves all before it to one side. Of text formats there is nothing to look up: a
 * line belongs to the split in which it begins.
 */
class FileCuts(session: Compat.Session, relation: HadoopFsRelation) {
  private val conf = session.sessionState.newHadoopConfWithOptions(relation.options)
  private lazy val codecs = new CompressionCodecFactory(conf)

  /**
   * Of each file its cuts, none if it has one row group, if its footer cannot be read, or if its format
   * is text. None in place of them if it is always read whole.
   *
   * @param bytes how many each range has at least; more where the footer has more, and above a limit:
   *   each range that is read costs the footer again
   */
  def of(files: Seq[FileStatusWithMetadata], bytes: Long): Seq[Option[FileCuts.Cuts]] = {
    val canCut = files.map(isCut)
    val read = FileCuts.readers.get(Fingerprint.format(relation))
    if (read.isEmpty || !canCut.contains(true)) canCut.map(if (_) Some(FileCuts.Cuts(Nil, 0)) else None)
    else {
      val (sent, layout, large) =
        (new SerializableConfiguration(conf), read.get, Policy.limit("large_footer_bytes"))
      val asked = files.zip(canCut).map { case (file, can) => (file.getPath.toString, file.getLen, can) }
      val context = session.sparkContext
      context.parallelize(asked, math.min(asked.size, context.defaultParallelism)).map {
        case (path, length, true) =>
          val (starts, footer) = Try(layout(new Path(path), sent.value)).getOrElse((Nil, 0L))
          val least = if (footer > large) math.max(footer, bytes) else bytes
          Some(FileCuts.Cuts(FileCuts.spaced(starts, length, least), footer))
        case _ => None
      }.collect().toSeq
    }
  }

  /** Whether splits of a file are read, by its format and in this session. */
  private def isCut(file: FileStatusWithMetadata): Boolean =
    FileRanges.areRead(session) && TableFormat.of(relation) == PlainFiles &&
      relation.fileFormat.isSplitable(relation.sparkSession, relation.options, file.getPath) &&
      !(WholeRecords.isText(relation) && isCompressed(file.getPath))

  private def isCompressed(path: Path): Boolean =
    codecs.getCodec(path) != null || FileCuts.isZstd(path)
}

object FileCuts {
  /** The offsets at which a file is cut, in ascending order, and the bytes of its footer; 0 if it has none. */
  final case class Cuts(offsets: Seq[Long], footer: Long)

  /** Where the groups of rows in a file start, and how many bytes its footer has. */
  private type Layout = (Path, Configuration) => (Seq[Long], Long)
  private val readers = Map[String, Layout]("parquet" -> rowGroups, "orc" -> stripes)

  /** An ending that Hadoop has no codec for. Spark 4.1 decompresses such files, and fails on two splits of one. */
  def isZstd(path: Path): Boolean = path.getName.toLowerCase(Locale.ROOT).endsWith(".zstd")

  private def rowGroups(path: Path, conf: Configuration): (Seq[Long], Long) = {
    val file = HadoopInputFile.fromPath(path, conf)
    // Without options it reads Hadoop's files of settings again, for each file.
    val reader = ParquetFileReader.open(file, HadoopReadOptions.builder(conf, path).build())
    val starts =
      try reader.getRowGroups.asScala.filter(_.getRowCount > 0).map(_.getStartingPos).toSeq
      finally reader.close()
    // Its length and the format's name follow the footer.
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

  /** Those of the starts at which to cut a file so that each range has so many bytes. */
  private def spaced(starts: Seq[Long], length: Long, bytes: Long): Seq[Long] =
    starts.sorted.drop(1).foldLeft(List(0L)) {
      case (cuts, start) if start - cuts.head >= bytes && length - start >= bytes => start :: cuts
      case (cuts, _) => cuts
    }.reverse.drop(1)
}
