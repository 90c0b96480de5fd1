package org.apache.spark.sql.sieve.statements

import java.util.{List => JList}
import scala.jdk.CollectionConverters._
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, CreateNamedStruct, Literal, TryEval}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, View}
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.sieve.predicate.{ColumnValue, IndexedExpression, IndexedExpressions, ManyKeys, Tuple}
import org.apache.spark.sql.sieve.base.{Compat, Json}
import org.apache.spark.sql.sieve.catalog.{Entry, Registry}
import org.apache.spark.sql.sieve.formats.{FileCuts, FilePart, FileRanges, Fingerprint, FormatTable, ListedFiles}
import org.apache.spark.sql.sieve.formats.{PinnedFileIndex, TableFormat, WholeRecords}
import org.apache.spark.sql.types._

/**
 * A table that a statement uses, with its properties and files. Data frames of this class read the files in the same
 * way as a query.
 */
class TableHandle(session: Compat.Session, name: JList[String], plan: LogicalPlan)
    extends RegisteredTable(session, name, plan.asInstanceOf[LogicalRelation].catalogTable.get) {
  private type Listed = (InternalRow, FileStatusWithMetadata)
  lazy val relation: HadoopFsRelation = plan match {
    case l: LogicalRelation => l.relation.asInstanceOf[HadoopFsRelation]
  }
  private lazy val format = TableFormat.of(relation)

  /** The kind of the table: "files" if Spark lists the table's files, or else a kind for error messages. */
  def kind: String = plan match {
    // A view over a stream also counts as a stream.
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

  /** The table's properties under the session's settings, as JSON. */
  def info: String = {
    val own = read
    Json.write(registered ++ Map(
      "format" -> Fingerprint.format(relation), "spark" -> session.version,
      "hive" -> session.sparkContext.conf.getOption("spark.sql.catalogImplementation").contains("hive"),
      "case_sensitive" -> session.sessionState.conf.caseSensitiveAnalysis,
      "corrupt_column" -> WholeRecords.corruptColumn(relation.options, session.sessionState.conf),
      "columns" -> (leafColumns(format.columns(relation), Nil) ++ expressions.map(one =>
        Map("path" -> Seq(one.sql), "stored" -> one.key, "type" -> one.keyType.catalogString))),
      "partition_columns" -> format.partitionColumns(relation),
      "fingerprint" -> own.hash, "fingerprint_parts" -> own.parts))
  }

  /** The current fingerprint of the table's reader, in the same form as in `info`. */
  def fingerprint: String = read.hash

  private def read: Fingerprint =
    Fingerprint.of(relation, table, session).and(new IndexedExpressions(expressions).parts)

  /** The keys of the expressions on which the current statement is creating an index. */
  private var created = Set.empty[Seq[String]]

  /** The expressions that have an index, and the expressions on which a statement is creating an index. */
  private def expressions: Seq[IndexedExpression] =
    (Entry(Registry.registrations(table), 0, 0).columns ++ created).toSeq.filter(IndexedExpression.isKey)
      .flatMap(IndexedExpression.now(_, columns, stored, session))

  private def columns: Seq[Attribute] = TableFormat.filesColumns(plan.asInstanceOf[LogicalRelation])

  /**
   * Adds an expression to the columns on which a statement can create an index. Returns the expression's key as JSON.
   * If the expression is only a column, returns the column's path instead. If the expression is refused, returns the
   * reason instead.
   *
   * @param kind a kind of `ManyKeys`; if it is empty, the type of the expression determines the kind
   */
  def define(sql: String, kind: String): String =
    IndexedExpression.typed(sql, Some(kind).filter(_.nonEmpty), columns, stored, session) match {
      case Left(reason) => Json.write(Map("refused" -> reason))
      case Right(made) => made.value match {
        case column: ColumnValue if made.kind.isEmpty => Json.write(Map("column" -> column.path))
        case value =>
          val key = expressions.find(one => one.kind == made.kind && one.isSame(value)).getOrElse(made).key
          created += key
          Json.write(Map("key" -> key))
      }
    }

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

  /** The object that supplies the table's log of changes and its list of files. See `FormatTable`. */
  lazy val history: FormatTable = format.table(new ListedFiles(relation))

  /** All current files and file slices of the table, in the same form as `ListedFiles.replace` returns them. */
  def list: String = history.list()

  /** The time at which the table reached the listed state, in ms since the epoch. Negative if the time is unknown. */
  def instant: Long = history.instant

  def path(text: String): Path = new Path(text)
  def hadoopConf: Configuration = session.sessionState.newHadoopConf()

  /**
   * Returns the offsets at which files can be cut into ranges of at least `bytes` bytes. `numbers` are the files'
   * numbers in the last listing. The JSON contains the `FileCuts.Cuts` of each file, or null for a file that scans
   * always read whole.
   */
  def cuts(numbers: JList[Int], bytes: Long): String = {
    val files = numbers.asScala.toSeq.map(number => history.files(number)._2)
    Json.write(new FileCuts(session, relation).of(files, bytes))
  }

  /**
   * Returns a data frame of the files with these numbers in the last listing. The frame reads the files in the same way
   * as a query, but ignores no error. The column `location` contains the position of a row's range among the ranges of
   * all files. Spark's own readers treat the column `location` as a partition column, so they do not read its value
   * from the files. For the slices in `alone`, the frame reads only the appended log files (`ListedFiles.append`).
   * Frames of text formats also have the column `WholeRecords.damaged`.
   *
   * @param cuts the offsets at which each file is cut, as JSON. An entry is empty for a file that is read whole. The
   *             list is empty if all files are read whole
   */
  def frame(
      reading: Compat.Session, numbers: JList[Int], alone: JList[Int], location: String,
      cuts: String, expression: String, kind: String): DataFrame = {
    val files = numbers.asScala.toSeq.map(history.files(_)._2)
    // The cuts are in JSON, because py4j would send each number of a nested list in a separate message.
    val cut = Json.read(cuts).elements.asScala.map(_.elements.asScala.map(_.asLong).toIndexedSeq)
      .toIndexedSeq.padTo(numbers.size, Nil)
    val rows = format.frame(reading, relation, files, location, cut).getOrElse(spark(reading, numbers, alone, location, cut))
    if (expression.isEmpty) rows else withValue(reading, rows, expression, kind)
  }

  /**
   * Adds two columns to each row: the value of an expression, and whether the expression failed. If the expression
   * fails for a row, each query that reads the row fails, too, so an index must not hide the row. An array becomes one
   * row for each element. A NULL or an empty array becomes one row with NULL.
   */
  private def withValue(reading: Compat.Session, rows: DataFrame, expression: String, kind: String): DataFrame = {
    val plan = rows.queryExecution.analyzed
    val own = Tuple.key(reading.sessionState.sqlParser.parseExpression(expression))
    val tried = Alias(TryEval(CreateNamedStruct(Seq(Literal("value"), own))), "__sieve_tried__")()
    val computed = Compat.frame(reading, Project(plan.output :+ tried, plan))
    val value = if (kind == ManyKeys.elements) "explode_outer(__sieve_tried__.value)" else "__sieve_tried__.value"
    computed.selectExpr(computed.columns.toSeq.dropRight(1).map(name => s"`${name.replace("`", "``")}`") :+
      s"$value AS __sieve_value__" :+ "__sieve_tried__ IS NULL AS __sieve_failed__": _*)
  }

  /** Returns the distinct grams of a frame's texts, their locations and signatures. See `DistinctGrams.of`. */
  def grams(frame: DataFrame, text: String, location: String, bits: Int, folds: Boolean): DataFrame =
    DistinctGrams.of(frame, text, location, bits, folds)

  /** Writes a run file of an index. See `RunWriter`. */
  def write(
      path: String, schema: String, rows: JList[JList[Any]], options: java.util.Map[String, String]): Unit =
    RunWriter.write(session, path, schema, rows, options)

  /** Returns the same data frame as `frame`, for files that Spark's own readers read. */
  private def spark(
      reading: Compat.Session, numbers: JList[Int], alone: JList[Int], location: String,
      cut: Seq[Seq[Long]]): DataFrame = {
    val physical = format.physical(relation)
    val own = physical.partitionSchema
    val schema = own.add(location, IntegerType, nullable = false)
    val slices = alone.asScala.toSet
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
