package org.apache.spark.sql.sieve.formats

import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Proxy}
import java.util.Locale
import java.util.concurrent.ConcurrentHashMap
import scala.jdk.CollectionConverters._

/**
 * Calls Iceberg's classes and methods by reflection. The user supplies Iceberg's jar, of any version, so the shim is
 * not compiled against Iceberg. The class loader of the user's table loads the classes.
 */
final class IcebergApi private (loader: ClassLoader) {
  private def load(name: String): Class[_] = Class.forName(s"${IcebergApi.root}.$name", true, loader)

  private val Seq(file, start, length) = Seq("file", "start", "length").map(load("ContentScanTask").getMethod(_))
  private val Seq(location, bytes, rows) =
    Seq("location", "fileSizeInBytes", "recordCount").map(load("ContentFile").getMethod(_))
  private val Seq(schema, spec) =
    Seq(load("FileScanTask").getMethod("schema"), load("PartitionScanTask").getMethod("spec"))
  private val fileScanTask = load("FileScanTask")
  private val deletes = fileScanTask.getMethod("deletes")
  private val Seq(splitOffsets, formatOf, copy) =
    Seq("splitOffsets", "format", "copy").map(load("ContentFile").getMethod(_))
  private val (schemaJson, specJson) = (
    load("SchemaParser").getMethod("toJson", load("Schema")),
    load("PartitionSpecParser").getMethod("toJson", load("PartitionSpec")))
  private val residual = load("expressions.ResidualEvaluator")
    .getMethod("unpartitioned", load("expressions.Expression"))
    .invoke(null, load("expressions.Expressions").getMethod("alwaysTrue").invoke(null))
  private val noDeletes = java.lang.reflect.Array.newInstance(load("DeleteFile"), 0)
  private val newTask = load("BaseFileScanTask").getConstructor(
    load("DataFile"), noDeletes.getClass, classOf[String], classOf[String], load("expressions.ResidualEvaluator"))
  private val specId = load("ContentFile").getMethod("specId")
  private val readManifest = load("ManifestFiles")
    .getMethod("read", load("ManifestFile"), load("io.FileIO"), classOf[java.util.Map[_, _]])

  /**
   * The location, the number of bytes and the number of rows of a task's data file. Returns None if the task reads only
   * a part of the file.
   */
  def dataFile(task: AnyRef): Option[(String, Long, Long)] = {
    val of = file.invoke(task)
    val size = bytes.invoke(of).asInstanceOf[Long]
    if (start.invoke(task) != 0L || length.invoke(task) != size) None
    else Some((location.invoke(of).toString, size, rows.invoke(of).asInstanceOf[Long]))
  }

  /**
   * The offsets at which Iceberg splits a task's data file. Empty if the file's writer recorded no offsets, or offsets
   * that do not ascend.
   */
  def splits(task: AnyRef): Seq[Long] = {
    val offsets = Option(splitOffsets.invoke(file.invoke(task)).asInstanceOf[java.util.List[java.lang.Long]])
      .fold(Seq.empty[Long])(_.asScala.map(_.longValue).toSeq)
    if (offsets.zip(offsets.drop(1)).forall { case (a, b) => a < b }) offsets else Nil
  }

  /** The format of a task's data file, in lower case. */
  def format(task: AnyRef): String = formatOf.invoke(file.invoke(task)).toString.toLowerCase(Locale.ROOT)

  /**
   * Returns a task that reads only those splits of `task` that overlap one of the ranges. Iceberg asks each task for
   * its splits, and sends only the splits to executors.
   */
  def inRanges(task: AnyRef, ranges: Seq[ByteRange]): AnyRef =
    Proxy.newProxyInstance(task.getClass.getClassLoader, Array(fileScanTask), new InvocationHandler {
      override def invoke(proxy: AnyRef, method: Method, arguments: Array[AnyRef]): AnyRef =
        try {
          val found = method.invoke(task, Option(arguments).toSeq.flatten: _*)
          if (method.getName != "split") found
          else found.asInstanceOf[java.lang.Iterable[AnyRef]].asScala.filter(overlaps(_, ranges)).toSeq.asJava
        } catch { case e: InvocationTargetException => throw e.getCause }
    })

  private def overlaps(split: AnyRef, ranges: Seq[ByteRange]): Boolean = {
    val from = start.invoke(split).asInstanceOf[Long]
    val end = from + length.invoke(split).asInstanceOf[Long]
    ranges.exists(range => from < range.end && range.start < end)
  }

  /** True if delete files hide rows of a task's data file. */
  def hidesRows(task: AnyRef): Boolean = !deletes.invoke(task).asInstanceOf[java.util.List[_]].isEmpty

  /**
   * Returns a task that reads the same file without a filter, and also reads the rows that delete files remove. Iceberg
   * merges splits that share a file object. So this method gives each task a file object of its own.
   */
  def withDeletedRows(task: AnyRef): AnyRef =
    taskOf(copy.invoke(file.invoke(task)), schema.invoke(task), spec.invoke(task))

  private def taskOf(file: AnyRef, schema: AnyRef, spec: AnyRef): AnyRef = newTask.newInstance(
    file, noDeletes, schemaJson.invoke(null, schema), specJson.invoke(null, spec), residual).asInstanceOf[AnyRef]

  /** Returns tasks that read all rows, including deleted rows, of the data files in some manifests of a table. */
  def tasksIn(manifests: Seq[AnyRef], iceberg: AnyRef, schema: AnyRef): Seq[AnyRef] = {
    val specs = Reflection.call(iceberg, "specs").asInstanceOf[java.util.Map[Any, AnyRef]]
    manifests.flatMap { manifest =>
      val reader = readManifest.invoke(null, manifest, Reflection.call(iceberg, "io"), specs)
      Reflection.call(reader, "select", IcebergApi.columnsOfTasks)
      val files = reader.asInstanceOf[java.lang.Iterable[AnyRef] with AutoCloseable]
      try files.asScala.map(one => taskOf(one, schema, specs.get(specId.invoke(one)))).toVector
      finally files.close()
    }
  }
}

object IcebergApi {
  val root = "org.apache.iceberg"
  /**
   * The columns of a manifest that a task needs to read a data file. If no columns are selected, Iceberg also reads
   * statistics.
   */
  private val columnsOfTasks = java.util.List.of(
    "file_path", "file_format", "file_size_in_bytes", "record_count", "partition", "key_metadata", "split_offsets")
  private val known = new ConcurrentHashMap[ClassLoader, IcebergApi]

  /** Returns the `IcebergApi` for the class loader that loaded an object of Iceberg. */
  def of(like: AnyRef): IcebergApi = known.computeIfAbsent(like.getClass.getClassLoader, new IcebergApi(_))
}
