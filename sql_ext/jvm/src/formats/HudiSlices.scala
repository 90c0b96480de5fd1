package org.apache.spark.sql.sieve.formats

import java.net.URI
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.stream.{Stream => JStream}
import scala.jdk.CollectionConverters._
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.types.StructType

/**
 * The file slices that Hudi lists. A slice consists of a base file and of log files, which a reader merges into the
 * base file. A new slice can lack a base file. File names are unique and a file's content never changes, so the names
 * of a slice's files identify the slice. The path of a slice is the path of its base file. A slice without a base file
 * has the path of its first log file. The length of a slice is the sum of its files' lengths. Instead of a modification
 * time, a slice has a digest of the names and lengths of its log files. The digest is 0 if the slice has no log file.
 *
 * A reader that shows the table as of an instant ignores log entries after this instant. So the reader returns a
 * slice's rows without the changes in later log files. However, if a later log file rolls back an earlier log file, the
 * reader applies the later log file.
 */
class HudiSlices(relation: HadoopFsRelation) extends Locations {
  import Hudi.option
  import Reflection.getter

  private lazy val instant = Hudi.instant(relation)
  private lazy val rolledBack = Hudi.isRolledBack(relation, instant)

  override def of(values: InternalRow, file: FileStatusWithMetadata): Option[Location] =
    if (isMapping(values)) slice(values, file).fold(baseAlone(file))(merged(_, file.getPath))
    else if (Hudi.isOwn(values)) None
    else baseAlone(file)

  private def baseAlone(file: FileStatusWithMetadata): Option[Location] =
    if (file.getPath.getName.startsWith(".")) None
    else Some(Location(file.getPath, Some(State(file.getLen, 0))))

  private def merged(slice: AnyRef, listed: Path): Option[Location] = {
    val (base, logs) = parts(slice)
    val understood = base.fold(logs.exists(name(_) == listed.getName))(b =>
      name(b) == listed.getName && option(getter(b, "getBootstrapBaseFile")).isEmpty)
    // Instants are strings of digits. Like Hudi, this code compares instants as text.
    val shown = logs.filter(getter(_, "getDeltaCommitTime").toString <= instant)
    base.orElse(logs.headOption).map(name).filter(_ => understood).map { n =>
      val (path, all) = (new Path(listed.getParent, n), Some(state(base, logs)))
      if (shown.size == logs.size) Location(path, all)
      else Location(path, if (rolledBack) None else Some(state(base, shown)), all)
    }
  }

  /**
   * The number of bytes in all files of a slice. In Hudi's listing, a slice with log files looks like a single base
   * file.
   */
  override def bytes(values: InternalRow, file: FileStatusWithMetadata): Long =
    of(values, file).flatMap(one => one.written.orElse(one.shown)).fold(super.bytes(values, file))(_.length)

  override def alone(
      values: InternalRow, file: FileStatusWithMetadata, schema: StructType,
      more: Any): PartitionDirectory = {
    val plain = super.alone(values, file, schema, more)
    if (!isMapping(values)) plain
    else slice(values, file).fold(plain)(one => plain.copy(values = mapping(values, plain.values, file.getPath, one)))
  }

  /**
   * Returns the size of a slice's base file, the total size of its log files, and a list of the slice's states. Each
   * state is [length, digest of the log files]. The list begins with the state without log files. Each later state
   * contains one more log file. Returns null for a slice without a base file, and for a file that is not part of a
   * slice.
   */
  def states(values: InternalRow, file: FileStatusWithMetadata): Map[String, Any] =
    (if (isMapping(values)) slice(values, file) else None).map(parts).collect {
      case (Some(base), logs) => Map(
        "base_bytes" -> size(base), "log_bytes" -> logs.map(size).sum,
        "states" -> (0 to logs.size).map(k => state(Some(base), logs.take(k))).map(s => Seq(s.length, s.modified)))
    }.orNull

  /** The log files of a slice, sorted by name. */
  def logs(values: InternalRow, file: FileStatusWithMetadata): Seq[AnyRef] =
    slice(values, file).toSeq.flatMap(parts(_)._2)

  /** Returns a listed file that makes a reader read only the slice's log files from position `from` on. */
  def logsAlone(
      values: InternalRow, file: FileStatusWithMetadata, from: Int): (InternalRow, FileStatusWithMetadata) = {
    val whole = slice(values, file).get
    val logs = parts(whole)._2.drop(from)
    val group = getter(whole, "getFileGroupId")
    val made = whole.getClass.getConstructor(group.getClass, classOf[String])
      .newInstance(group, getter(whole, "getBaseInstantTime")).asInstanceOf[AnyRef]
    logs.foreach(log => whole.getClass.getMethod("addLogFile", log.getClass).invoke(made, log))
    val path = new Path(file.getPath.getParent, name(logs.last))
    (mapping(values, getter(values, "getPartitionValues").asInstanceOf[InternalRow], path, made),
      FileStatusWithMetadata(new FileStatus(size(logs.last), false, 0, 0, 0, path)))
  }

  /** The base file of a slice, and its log files sorted by name. */
  private def parts(slice: AnyRef): (Option[AnyRef], Seq[AnyRef]) =
    (option(getter(slice, "getBaseFile")),
      getter(slice, "getLogFiles").asInstanceOf[JStream[AnyRef]].iterator.asScala.toSeq.sortBy(name))

  /** Returns an object of Hudi that contains the partition values of a directory and a file slice. */
  private def mapping(like: InternalRow, values: InternalRow, path: Path, slice: AnyRef): InternalRow =
    like.getClass.getConstructor(classOf[InternalRow], classOf[Map[_, _]])
      .newInstance(values, Map(fileId(like, path) -> slice))

  /**
   * True if the partition values of a directory are an object of Hudi that also contains the directory's file slices.
   */
  private def isMapping(values: InternalRow): Boolean =
    Hudi.isOwn(values) && values.getClass.getSimpleName.endsWith("HoodiePartitionFileSliceMapping")

  /** The slice that a reader reads for a listed file. Returns None if the reader reads the file without log files. */
  private def slice(values: InternalRow, file: FileStatusWithMetadata): Option[AnyRef] =
    values.getClass.getMethod("getSlice", classOf[String]).invoke(values, fileId(values, file.getPath))
      .asInstanceOf[Option[AnyRef]]

  private def fileId(values: InternalRow, path: Path): String = {
    val kind: Class[_] = Hudi.load(values, "storage.StoragePath")
    val theirs = kind.getConstructor(classOf[URI]).newInstance(path.toUri).asInstanceOf[AnyRef]
    Hudi.load(values, "common.fs.FSUtils").getMethod("getFileIdFromFilePath", kind).invoke(null, theirs).toString
  }

  private def name(file: AnyRef): String = getter(file, "getFileName").toString
  private def size(file: AnyRef): Long = getter(file, "getFileSize").asInstanceOf[Long]

  private def state(base: Option[AnyRef], logs: Seq[AnyRef]): State =
    State((base ++ logs).map(size).sum, digest(logs))

  private def digest(logs: Seq[AnyRef]): Long =
    if (logs.isEmpty) 0
    else {
      val text = logs.map(log => s"${name(log)} ${size(log)}\n").mkString
      val hash = MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))
      (ByteBuffer.wrap(hash).getLong & Long.MaxValue).max(1)
    }
}

object HudiSlices {
  /** Options for a reader that returns every record in the log files, instead of one merged record for each key. */
  val unmerged: Map[String, String] = Map("hoodie.datasource.merge.type" -> "skip_merge")
}
