package org.apache.spark.sql.sieve.formats

import java.util.function.Supplier
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import org.apache.spark.sql.connector.catalog.SupportsRead
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Creates scans of chosen data files. Iceberg plans a query's scan and the tasks of the scan. This object creates a
 * second scan of the same table with only some of the scan's tasks and their delete files. Iceberg packs the tasks into
 * partitions. The query's own scan stays unchanged, because other parts of a plan may share this scan.
 */
object IcebergScans {
  private val Seq(ofQueries, ofReplacements) =
    Seq("BatchQuery", "CopyOnWrite").map(kind => s"${IcebergApi.root}.spark.source.Spark${kind}Scan")

  /**
   * True if a scan reads one snapshot for a query. In Spark 3.5, a scan of appended files has the same class, but also
   * has a start snapshot.
   */
  def isOfQuery(scan: Scan): Boolean =
    scan.getClass.getName == ofQueries && Reflection.field(scan, "startSnapshotId").isEmpty

  /** The snapshot that a scan reads. Returns None for a table without a snapshot. */
  def snapshot(scan: Scan): Option[AnyRef] =
    Option(Reflection.call(scan, "scan")).flatMap(own => Option(Reflection.call(own, "snapshot")))

  /** Iceberg's schema of the columns that a scan of a table can read. In Spark 3.5, only the table has this schema. */
  def schema(table: SupportsRead, scan: Scan): AnyRef =
    if (Reflection.has(scan, "schema")) Reflection.call(scan, "schema") else Reflection.call(table, "snapshotSchema")

  /**
   * True if the columns that a scan reads have the same ids in a schema. In Spark 3.5, new scans of a table object use
   * the newest schema. Since Spark created this scan, a column can have got the name of another column.
   */
  def reads(scan: Scan, schema: AnyRef): Boolean =
    Reflection.has(scan, "schema") && (Reflection.call(scan, "schema") eq schema) || {
      val read = ids(projection(scan))
      ids(schema).forall { case (name, id) => read.get(name).forall(_ == id) }
    }

  private def projection(scan: Scan): AnyRef =
    Reflection.call(scan, if (Reflection.has(scan, "projection")) "projection" else "expectedSchema")
  private def ids(schema: AnyRef): Map[String, Any] =
    Reflection.call(schema, "idToName").asInstanceOf[java.util.Map[Any, String]].asScala.map(_.swap).toMap

  /** True if a copy-on-write statement replaces all files of a scan. */
  def isOfReplacement(scan: Scan): Boolean = scan.getClass.getName == ofReplacements

  /** The tasks of a scan, one for each data file. */
  def tasks(scan: Scan): Seq[AnyRef] =
    Reflection.call(scan, "tasks").asInstanceOf[java.util.List[AnyRef]].asScala.toVector

  /**
   * Returns a second scan with some tasks of the first scan. The second scan must report the same partitioning as the
   * first scan. Iceberg derives the type of a scan's grouping key from the partition specs of its tasks, and the chosen
   * tasks can have fewer specs. So this method copies the type from the first scan. Copying the specs, too, would make
   * Iceberg parse the spec of each task of the first scan.
   */
  def narrowed(table: SupportsRead, options: CaseInsensitiveStringMap, own: Scan, some: Seq[AnyRef]): Scan = {
    val made = scanOf(table, options, own, own.readSchema)
    if (made.readSchema != own.readSchema) throw new IllegalStateException(s"${made.readSchema} for ${own.readSchema}")
    Reflection.set(made, "groupingKeyType", Reflection.call(own, "groupingKeyType"))
    reset(made, some)
    made
  }

  /** Returns a scan of exactly these tasks of a listing. The scan equals no other scan. */
  def of(files: IcebergFiles, columns: StructType, some: Seq[AnyRef]): Scan = {
    val made = scanOf(files.table, files.options, files.scan, columns)
    reset(made, some)
    new ScanOfTasks(made)
  }

  /**
   * Returns a new scan of a table, which opens files in the same way as the given scan. If a REST catalog plans scans,
   * only a scan that has planned its own tasks has the catalog's credentials for the files. If the given scan has
   * planned no tasks, the new scan opens files in the same way as the table.
   */
  private def scanOf(table: SupportsRead, options: CaseInsensitiveStringMap, own: Scan, columns: StructType): Scan = {
    val builder = table.newScanBuilder(options)
    builder.asInstanceOf[SupportsPushDownRequiredColumns].pruneColumns(columns)
    val made = builder.build()
    if (!isOfQuery(made)) throw new IllegalStateException(s"unknown scan ${made.getClass.getName}")
    if (!reads(own, projection(made))) throw new IcebergColumnsChanged
    for (planned <- Reflection.field(own, "fileIO").collect { case io: Supplier[_] => io }) {
      val io: Supplier[Any] = () =>
        try planned.get catch { case NonFatal(_) => Reflection.call(Reflection.call(table, "table"), "io") }
      Reflection.set(made, "fileIO", io)
    }
    made
  }

  private def reset(scan: Scan, some: Seq[AnyRef]): Unit =
    Reflection.call(scan, "resetTasks", new java.util.ArrayList[AnyRef](some.asJava))
}

/** A scan that equals no other scan. Iceberg's own scans with equal filters are equal, even if their tasks differ. */
private class ScanOfTasks(own: Scan) extends Scan {
  private lazy val batch = own.toBatch
  override def readSchema: StructType = own.readSchema
  override def description: String = own.description
  override def toBatch: Batch = new Batch {
    override def planInputPartitions(): Array[InputPartition] = batch.planInputPartitions()
    override def createReaderFactory(): PartitionReaderFactory = batch.createReaderFactory()
  }
}
