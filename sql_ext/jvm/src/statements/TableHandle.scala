package org.apache.spark.sql.sieve.statements

import java.util.{List => JList}
import scala.jdk.CollectionConverters._
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, View}
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.sieve.base.{Compat, Json}
import org.apache.spark.sql.sieve.formats.{FileCuts, FilePart, FileRanges, Fingerprint, FormatTable, ListedFiles}
import org.apache.spark.sql.sieve.formats.{PinnedFileIndex, TableFormat, WholeRecords}
import org.apache.spark.sql.types._

/**
 * A table of a statement: its properties, its files, and a frame that reads some of the files in the same way as a
 * query.
 */
class TableHandle(session: Compat.Session, name: JList[String], plan: LogicalPlan)
    extends RegisteredTable(session, name, plan.asInstanceOf[LogicalRelation].catalogTable.get) {
  private type Listed = (InternalRow, FileStatusWithMetadata)
  lazy val relation: HadoopFsRelation = plan match {
    case l: LogicalRelation => l.relation.asInstanceOf[HadoopFsRelation]
  }
  private lazy val format = TableFormat.of(relation)

  /** The kind of the table: "files" if Spark lists its files, otherwise the kind that the error message names. */
  def kind: String = plan match {
    // A stream below a view cannot be indexed, either.
    case _ if plan.isStreaming => "stream"
    case l: LogicalRelation => l.relation match {
      case fs: HadoopFsRelation if !TableFormat.isKnown(fs) =>
        s"location ${fs.location.getClass.getName}"
      case _: HadoopFsRelation => if (l.catalogTable.isEmpty) "path" else "files"
      case other => s"source ${other.getClass.getName}"
    }
    case h: HiveTableRelation => s"hive ${h.tableMeta.storage.serde.getOrElse("")}"
    case v: DataSourceV2Relation => s"v2 ${v.table.getClass.getName}"
    case v: View => if (v.isTempView) "temporary view" else "view"
    case other => s"source ${other.getClass.getName}"
  }

  /** The table's properties under the settings of the session, as JSON. */
  def info: String = {
    val fingerprint = Fingerprint.of(relation, table, session)
    Json.write(registered ++ Map(
      "format" -> Fingerprint.format(relation), "spark" -> session.version,
      "hive" -> session.sparkContext.conf.getOption("spark.sql.catalogImplementation").contains("hive"),
      "case_sensitive" -> session.sessionState.conf.caseSensitiveAnalysis,
      "corrupt_column" -> WholeRecords.corruptColumn(relation.options, session.sessionState.conf),
      "columns" -> leafColumns(format.columns(relation), Nil),
      "partition_columns" -> format.partitionColumns(relation),
      "fingerprint" -> fingerprint.hash, "fingerprint_parts" -> fingerprint.parts))
  }

  /** The fingerprint that `info` would return now. */
  def fingerprint: String = Fingerprint.of(relation, table, session).hash

  private lazy val stored = format.stored(relation)

  private def leafColumns(schema: StructType, above: List[String]): Seq[Map[String, Any]] =
    schema.fields.toSeq.flatMap { f =>
      val (path, declared) = (above :+ f.name, CharVarcharUtils.getRawType(f.metadata).getOrElse(f.dataType))
      val own = Map("path" -> path, "stored" -> stored(path), "type" -> declared.catalogString)
      declared match {
        case s: StructType => own +: leafColumns(s, path)
        case _ => Seq(own)
      }
    }

  /** The object for the table's log of changes and its list of files. See `FormatTable`. */
  lazy val history: FormatTable = format.table(new ListedFiles(relation))

  /** All current locations of the table, in the form of `ListedFiles.replace`. */
  def list: String = history.list()

  /** The time of the listed state, ms since the epoch. Negative if the time is unknown. */
  def instant: Long = history.instant

  def path(text: String): Path = new Path(text)
  def hadoopConf: Configuration = session.sessionState.newHadoopConf()

  /**
   * Returns the offsets at which files can be cut into ranges of at least `bytes` bytes, by their numbers in the last
   * listing. The JSON has the `FileCuts.Cuts` of each file, or null for a file that is always read whole.
   */
  def cuts(numbers: JList[Int], bytes: Long): String = {
    val files = numbers.asScala.toSeq.map(number => history.files(number)._2)
    Json.write(new FileCuts(session, relation).of(files, bytes))
  }

  /**
   * Reads the files with these numbers in the last listing in the same way as a query, but ignores no error. An
   * additional column has the ordinal of a row's range among the ranges of all files. This column is a partition
   * column, whose value needs no reading. The frame reads only the appended log files of slices in `alone`
   * (`ListedFiles.append`). Text formats also have the column `WholeRecords.damaged`.
   *
   * @param cuts the offsets at which each file is cut, as JSON; empty for a file that is read whole, and
   *             empty if all files are
   */
  def frame(
      reading: Compat.Session, numbers: JList[Int], alone: JList[Int], location: String,
      cuts: String): DataFrame = {
    val files = numbers.asScala.toSeq.map(history.files(_)._2)
    format.frame(reading, relation, files, location).getOrElse(spark(reading, numbers, alone, location, cuts))
  }

  /** The frame if Spark's own readers read the files. */
  private def spark(
      reading: Compat.Session, numbers: JList[Int], alone: JList[Int], location: String,
      cuts: String): DataFrame = {
    val physical = format.physical(relation)
    val own = physical.partitionSchema
    val schema = own.add(location, IntegerType, nullable = false)
    val slices = alone.asScala.toSet
    // The cuts are passed as text, because py4j sends each number of nested lists separately.
    val cut = Json.read(cuts).elements.asScala.map(_.elements.asScala.map(_.asLong).toIndexedSeq)
      .toIndexedSeq.padTo(numbers.size, Nil)
    val places = cut.scanLeft(0)(_ + _.size + 1)
    val (added, whole) = numbers.asScala.toSeq.indices.partition(k => slices(numbers.get(k)))

    def over(some: Seq[Int], from: Int => Listed, options: Map[String, String]) = {
      val files = some.flatMap { k =>
        val (values, file) = from(numbers.get(k))
        val parts =
          if (cut(k).isEmpty) Seq(file)
          else FileRanges.between(cut(k), file.getLen).map(range => FileRanges.restricted(file, FilePart(Seq(range), 0)))
        parts.zipWithIndex.map { case (part, at) => history.files.locations.alone(values, part, own, places(k) + at) }
      }
      val made = WholeRecords.of(PinnedFileIndex.over(physical, files, schema, options))
      Compat.frame(reading, LogicalRelation(made, isStreaming = false))
    }

    val frames =
      (if (whole.nonEmpty || added.isEmpty) Seq(over(whole, history.files(_), Map.empty)) else Nil) ++
        (if (added.nonEmpty) Seq(over(added, history.files.appended, history.optionsOfAppended)) else Nil)
    frames.reduce(_ union _)
  }
}
