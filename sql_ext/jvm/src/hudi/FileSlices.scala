package org.apache.spark.sql.sieve

import java.net.URI
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.stream.{Stream => JStream}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{FileStatus, Path}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.types.StructType

/**
 * The file slices that Hudi lists: a base file, or none yet, and the log files that a reader merges
 * into it. Names are unique and what bears them stays as it is, so they tell a slice: it goes by the
 * path of its base file, or its first log file; for a length it has the sum of all, and for a time a
 * digest of the names and lengths of its log files, 0 for none.
 *
 * A reader passes over what was logged after the instant that it reads at, and shows what a slice
 * without those log files would: unless one of them takes back an earlier one.
 */
class FileSlices(relation: HadoopFsRelation) extends Locations {
  import Hudi.{call, option}

  private lazy val instant = Hudi.instant(relation)
  private lazy val takenBack = HudiChanges.takenBack(relation, instant)

  override def of(values: InternalRow, file: FileStatusWithMetadata): Option[Location] =
    if (isMapping(values)) {
      slice(values, file.getPath).fold(baseAlone(file))(merged(_, file.getPath))
    } else if (Hudi.isOwn(values)) None
    else baseAlone(file)

  private def baseAlone(file: FileStatusWithMetadata): Option[Location] =
    if (file.getPath.getName.startsWith(".")) None
    else Some(Location(file.getPath, Some(State(file.getLen, 0))))

  private def merged(slice: AnyRef, listed: Path): Option[Location] = {
    val (base, logs) = parts(slice)
    val named = base.orElse(logs.headOption).map(name)
    val understood = base.fold(logs.exists(name(_) == listed.getName))(b =>
      name(b) == listed.getName && option(call(b, "getBootstrapBaseFile")).isEmpty)
    // Instants are digits, so that Hudi compares them as text, too.
    val shown = logs.filter(call(_, "getDeltaCommitTime").toString <= instant)
    def state(of: Seq[AnyRef]) = State((base ++ of).map(size).sum, digest(of))
    named.filter(_ => understood).map { n =>
      val path = new Path(listed.getParent, n)
      if (shown.size == logs.size) Location(path, Some(state(logs)))
      else Location(path, if (takenBack) None else Some(state(shown)), Some(state(logs)))
    }
  }

  override def alone(
      values: InternalRow, file: FileStatusWithMetadata, schema: StructType,
      more: Any): PartitionDirectory = {
    val plain = super.alone(values, file, schema, more)
    if (!isMapping(values)) plain
    else slice(values, file.getPath).fold(plain) { one =>
      plain.copy(values = mapping(values, plain.values, file.getPath, one))
    }
  }

  // Once so much has been logged, a share of the base file, many of its rows may be hidden.
  private val mostLogged = 0.25

  override def grown(
      values: InternalRow, file: FileStatusWithMetadata, length: Long, modified: Long,
      allRows: Boolean): Option[(InternalRow, FileStatusWithMetadata)] =
    for {
      one <- if (isMapping(values) && wholeRecords) slice(values, file.getPath) else None
      (found, logs) = parts(one)
      base <- found
      if logs.map(size).sum <= mostLogged * size(base)
      later <- logs.indices.map(logs.splitAt).collectFirst {
        case (held, later) if (held.isEmpty || allRows) && digest(held) == modified &&
          (base +: held).map(size).sum == length => later
      }
      if later.forall(HudiLogs.ofWholeRecords(relation, _))
    } yield {
      val path = new Path(file.getPath.getParent, name(later.last))
      val listed = new FileStatus(size(later.last), false, 0, 0, 0, path)
      val bare = values.getClass.getMethod("getPartitionValues").invoke(values)
      (mapping(values, bare.asInstanceOf[InternalRow], path, logsAlone(one, later)),
        FileStatusWithMetadata(listed))
    }

  private lazy val wholeRecords = Hudi.takesWholeRecords(relation)

  private def logsAlone(slice: AnyRef, logs: Seq[AnyRef]): AnyRef = {
    val group = call(slice, "getFileGroupId")
    val made = slice.getClass.getConstructor(group.getClass, classOf[String])
      .newInstance(group, call(slice, "getBaseInstantTime")).asInstanceOf[AnyRef]
    logs.foreach(log => slice.getClass.getMethod("addLogFile", log.getClass).invoke(made, log))
    made
  }

  /** The base file of a slice, and its log files by name. */
  private def parts(slice: AnyRef): (Option[AnyRef], Seq[AnyRef]) =
    (option(call(slice, "getBaseFile")),
      call(slice, "getLogFiles").asInstanceOf[JStream[AnyRef]].iterator.asScala.toSeq.sortBy(name))

  /** Values of a directory that tell a file's slice. */
  private def mapping(like: InternalRow, values: InternalRow, path: Path, slice: AnyRef): InternalRow =
    like.getClass.getConstructor(classOf[InternalRow], classOf[Map[_, _]])
      .newInstance(values, Map(fileId(like, path) -> slice))

  /** Values of a directory that also tell the slices of its files. */
  private def isMapping(values: InternalRow): Boolean =
    Hudi.isOwn(values) && values.getClass.getSimpleName.endsWith("HoodiePartitionFileSliceMapping")

  /** The slice that a reader finds for a file; it reads a file that it finds none for as it is. */
  private def slice(values: InternalRow, path: Path): Option[AnyRef] =
    values.getClass.getMethod("getSlice", classOf[String]).invoke(values, fileId(values, path))
      .asInstanceOf[Option[AnyRef]]

  private def fileId(values: InternalRow, path: Path): String = {
    val loader = values.getClass.getClassLoader
    val kind: Class[_] = loader.loadClass("org.apache.hudi.storage.StoragePath")
    val theirs = kind.getConstructor(classOf[URI]).newInstance(path.toUri).asInstanceOf[AnyRef]
    loader.loadClass("org.apache.hudi.common.fs.FSUtils").getMethod("getFileIdFromFilePath", kind)
      .invoke(null, theirs).toString
  }

  private def name(file: AnyRef): String = call(file, "getFileName").toString

  private def size(file: AnyRef): Long = call(file, "getFileSize").asInstanceOf[Long]

  private def digest(logs: Seq[AnyRef]): Long =
    if (logs.isEmpty) 0
    else {
      val text = logs.map(log => s"${name(log)} ${size(log)}\n").mkString
      val hash = MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))
      (ByteBuffer.wrap(hash).getLong & Long.MaxValue).max(1)
    }
}
