package org.apache.spark.sql.sieve.formats

import java.util.BitSet
import scala.jdk.CollectionConverters._
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.hadoop.mapreduce.Job
import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.connector.catalog.{CatalogV2Util, SupportsRead, Table}
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A listing of the data files of an Iceberg scan. The listing stores a file's number of rows as the file's modification
 * time. The data file at a path never changes, so the path, the number of bytes and the number of rows identify the
 * file.
 */
final class IcebergFiles(
    val table: Table with SupportsRead, val options: CaseInsensitiveStringMap, val scan: Scan) extends FileIndex {
  /** The table of Iceberg's library. */
  lazy val iceberg: AnyRef = Reflection.call(table, "table")
  lazy val types: StructType = IcebergFiles.types(table)
  /** Iceberg's schema of the table's columns, as the scan reads them. */
  val schema: AnyRef = IcebergScans.schema(table, scan)
  if (!IcebergScans.reads(scan, schema)) throw new IcebergColumnsChanged
  lazy val columns: IcebergColumns = new IcebergColumns(schema, types, IcebergFiles.constants(iceberg))

  /**
   * The commit time of the snapshot that the scan reads, in ms since the epoch. The value is None if the scan reads the
   * current snapshot.
   */
  lazy val asOf: Option[Long] = IcebergScans.snapshot(scan).filter { read =>
    !Iceberg.current(iceberg).exists(Reflection.call(_, "snapshotId") == Reflection.call(read, "snapshotId"))
  }.map(Iceberg.committed)

  override def listFiles(p: Seq[Expression], d: Seq[Expression]): Seq[PartitionDirectory] =
    Seq(IcebergFiles.listed(iceberg, IcebergScans.tasks(scan)))

  override def rootPaths: Seq[Path] = Nil
  override def inputFiles: Array[String] = listFiles(Nil, Nil).flatMap(_.files.map(_.getPath.toString)).toArray
  override def refresh(): Unit = ()
  override def sizeInBytes: Long = listFiles(Nil, Nil).flatMap(_.files.map(_.getLen)).sum
  override def partitionSchema: StructType = new StructType
  override def toString: String = scan.description
  override def equals(other: Any): Boolean = other match {
    case that: IcebergFiles => scan == that.scan
    case _ => false
  }
  override def hashCode: Int = scan.hashCode
}

/** Thrown if a column of the table got another name or id after Spark had created a scan. */
class IcebergColumnsChanged
    extends IllegalStateException("the columns of the table have changed since Spark created the scan")

object IcebergFiles {
  /**
   * The two keys under which the metadata of a listed file can contain the file's task. The first key is for files that
   * the listing identifies. The second key is for all other files.
   */
  private val (identified, other) = ("sieve_task", "sieve_unidentified_task")

  /** The columns of a table with Spark's types. */
  def types(table: Table): StructType = CatalogV2Util.v2ColumnsToStructType(table.columns)

  /**
   * The ids of the columns that a partition spec uses with the identity transform. Readers take these values from a
   * file's partition, and a user can add the same file to another partition. So the file alone does not determine these
   * values.
   */
  private def constants(iceberg: AnyRef): Set[Any] =
    Reflection.call(iceberg, "specs").asInstanceOf[java.util.Map[_, AnyRef]].values.asScala.flatMap { spec =>
      Reflection.call(spec, "identitySourceIds").asInstanceOf[java.util.Set[Any]].asScala
    }.toSet

  /** Lists the data files of tasks of a table. Each task reads one data file. */
  def listed(iceberg: AnyRef, tasks: Seq[AnyRef]): PartitionDirectory = {
    val api = IcebergApi.of(iceberg)
    val statuses = IcebergStatuses.of(iceberg, tasks.size)
    // A table can contain the same data file twice, in two partitions. The listing cannot identify a file that occurs
    // twice.
    val (once, twice) = (new BitSet, new BitSet)
    var last = statuses.start
    val found = tasks.toVector.map(api.dataFile(_).map { case (location, bytes, rows) =>
      last = statuses.after(last, location, bytes, rows)
      (if (once.get(last.number)) twice else once).set(last.number)
      last
    })
    PartitionDirectory(InternalRow.empty, tasks.iterator.zip(found.iterator).map { case (task, own) =>
      val (status, key) = own.fold((IcebergStatuses.part, other)) { own =>
        // A cached status always determines the same location, so a file that occurs twice gets a new status object.
        if (twice.get(own.number)) (new FileStatus(own.status), other)
        else (own.status, if (own.isPlain) identified else other)
      }
      FileStatusWithMetadata(status, Map.empty[String, Any].updated(key, task))
    }.toVector)
  }

  /** The tasks of listed files. If a file is restricted to ranges, its task reads only these ranges. */
  def tasks(directories: Seq[PartitionDirectory]): Seq[AnyRef] = directories.flatMap(_.files.map { file =>
    val task = taskOf(file)
    FileRanges.of(file).fold(task)(IcebergApi.of(task).inRanges(task, _))
  })
  def taskOf(file: FileStatusWithMetadata): AnyRef =
    file.metadata.getOrElse(identified, file.metadata(other)).asInstanceOf[AnyRef]

  /** A location as an absolute URI. Some catalogs omit the scheme for folders of the default file system. */
  def path(location: String): Path = {
    val path = new Path(location)
    if (path.toUri.getScheme != null) path
    else path.makeQualified(FileSystem.getDefaultUri(SparkHadoopUtil.get.conf), new Path("/"))
  }

  /**
   * The locations of an Iceberg scan. A file that the listing cannot identify has no location, so scans always read
   * this file.
   */
  object ByTask extends Locations {
    override def of(values: InternalRow, file: FileStatusWithMetadata): Option[Location] =
      if (file.metadata.contains(identified)) super.of(values, file) else None
    override def hidesRows(file: FileStatusWithMetadata): Boolean = {
      val task = taskOf(file)
      IcebergApi.of(task).hidesRows(task)
    }
  }
}

/** The format of data files that only Iceberg's own readers can read. */
final case class IcebergFormat() extends FileFormat with DataSourceRegister {
  override def shortName(): String = "iceberg"
  override def inferSchema(session: SparkSession, options: Map[String, String], files: Seq[FileStatus]): Option[StructType] = None
  override def prepareWrite(session: SparkSession, job: Job, options: Map[String, String], schema: StructType): OutputWriterFactory =
    throw new UnsupportedOperationException("Iceberg writes its tables itself")
}
