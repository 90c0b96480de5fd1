package org.apache.spark.sql.sieve.formats

import java.io.CharConversionException
import com.univocity.parsers.common.TextParsingException
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.hadoop.mapreduce.Job
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, Literal, UnsafeProjection}
import org.apache.spark.sql.catalyst.util.{CaseInsensitiveMap, FailFastMode, ParseMode, PermissiveMode}
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types._
import org.apache.spark.util.NextIterator

/**
 * Reads a text format (CSV or JSON). The reader parses all columns of a record, even if a plan needs only some columns.
 *
 * Spark's result for a damaged record depends on the columns that a query reads. For the record `{"a":9,"t":"\q"}`, a
 * query that reads only `a` gets NULL, because the JSON parser fails when it skips `t`. A query that reads `a` and `t`
 * gets 9. A parser that can convert a column can also skip the column. So a record without an error in any column has
 * the same values for all queries. `CsvQuoting` describes the exceptions in CSV. So if no record of a file has an
 * error, the rows of the file are valid for every query. If a record has an error, the rows of the file prove nothing
 * about queries of other columns.
 *
 * If a plan reads the column `damaged`, the reader parses whole records in mode FAILFAST. At the first error, the
 * reader returns one row in which `damaged` is true, and skips the rest of its split. A plan without the column
 * `damaged` needs only a sample of the rows, so the reader parses in mode PERMISSIVE. An error that does not belong to
 * a single record ends the sample early.
 */
class WholeRecords(inner: FileFormat, isCsv: Boolean) extends FileFormat with Serializable {
  override def inferSchema(
      session: SparkSession, options: Map[String, String], files: Seq[FileStatus]): Option[StructType] =
    inner.inferSchema(session, options, files)

  override def prepareWrite(
      session: SparkSession, job: Job, options: Map[String, String], schema: StructType) =
    inner.prepareWrite(session, job, options, schema)

  override def isSplitable(session: SparkSession, options: Map[String, String], path: Path): Boolean =
    inner.isSplitable(session, options, path)

  override def buildReaderWithPartitionValues(
      session: SparkSession, dataSchema: StructType, partitionSchema: StructType,
      requiredSchema: StructType, filters: Seq[Filter], options: Map[String, String],
      conf: Configuration): PartitionedFile => Iterator[InternalRow] = {
    val columns = StructType(dataSchema.filterNot(_.name == WholeRecords.damaged))
    def in(mode: ParseMode) = WholeRecords.set(options, "mode", mode.name)
    if (!requiredSchema.fieldNames.contains(WholeRecords.damaged)) {
      val read = inner.buildReaderWithPartitionValues(
        session, columns, partitionSchema, requiredSchema, filters, in(PermissiveMode), conf)
      file => new WholeRecords.Rows(read(file), None, identity, None)
    } else {
      // The column for the text of damaged records is not in the files, so the reader does not read this column.
      val sqlConf = session.asInstanceOf[Compat.Session].sessionState.conf
      val record = WholeRecords.corruptColumn(options, sqlConf)
      val all = StructType(columns.filterNot(_.name == record))
      val (quoting, own) = if (isCsv) {
        val (rule, changed) = CsvQuoting.of(all, in(FailFastMode), sqlConf)
        (Some(rule), changed)
      } else (None, in(FailFastMode))
      val read = inner.buildReaderWithPartitionValues(session, all, partitionSchema, all, Nil, own, conf)
      /**
       * The required columns of a row, followed by the partition values. The partition values begin at position `from`
       * of the input row. In a damaged row, all required columns except `damaged` are NULL.
       */
      def columnsOf(isDamaged: Boolean, from: Int): Seq[Expression] = requiredSchema.map {
        case f if f.name == WholeRecords.damaged => Literal(isDamaged)
        case f if isDamaged || f.name == record => Literal(null, f.dataType)
        case f => BoundReference(all.fieldIndex(f.name), f.dataType, f.nullable)
      } ++ partitionSchema.zipWithIndex.map {
        case (f, k) => BoundReference(from + k, f.dataType, f.nullable)
      }
      val (sound, damaged) = (columnsOf(isDamaged = false, all.length), columnsOf(isDamaged = true, 0))
      file => new WholeRecords.Rows(
        read(file), quoting, UnsafeProjection.create(sound),
        Some(UnsafeProjection.create(damaged)(file.partitionValues)))
    }
  }
}

object WholeRecords {
  /**
   * The name of the column that marks a damaged record. `Fingerprint` ensures that no query uses an index of a table
   * with a column of this name.
   */
  val damaged = "__sieve_damaged__"
  private val formats = Set("csv", "json")

  /** Returns the options with a new value for one option. The option's name is not case-sensitive. */
  def set(options: Map[String, String], name: String, value: String): Map[String, String] =
    options.filterNot { case (k, _) => k.equalsIgnoreCase(name) } + (name -> value)

  /**
   * Returns a relation that reads whole records if a plan reads `damaged`. Returns a relation of another format
   * unchanged.
   */
  def of(relation: HadoopFsRelation): HadoopFsRelation =
    if (!isText(relation)) relation
    else relation.copy(
      dataSchema = relation.dataSchema.add(damaged, BooleanType, nullable = false),
      fileFormat = new WholeRecords(
        relation.fileFormat, Fingerprint.format(relation) == "csv"))(relation.sparkSession)

  def isText(relation: HadoopFsRelation): Boolean = formats(Fingerprint.format(relation))

  /** The name of the column for the text of damaged records. A table does not need to have this column. */
  def corruptColumn(options: Map[String, String], conf: SQLConf): String =
    CaseInsensitiveMap(options).getOrElse("columnNameOfCorruptRecord", conf.columnNameOfCorruptRecord)

  /**
   * Returns the rows before the first record with an error. If `broken` is given, the row `broken` follows in place of
   * this record.
   */
  private class Rows(
      open: => Iterator[InternalRow], quoting: Option[CsvQuoting], whole: InternalRow => InternalRow,
      broken: => Option[InternalRow]) extends NextIterator[InternalRow] {
    private lazy val rows = open
    private var isBroken = false

    override protected def getNext(): InternalRow = {
      val row =
        try { if (!isBroken && rows.hasNext) Some(rows.next()) else None }
        catch { case e: Exception if isOfParser(e) => Some(null) }
      val made = row.flatMap {
        case sound if sound != null && !quoting.exists(_.isDoubtful(sound)) => Some(whole(sound))
        case _ =>
          isBroken = true
          broken
      }
      finished = made.isEmpty
      made.orNull
    }

    override protected def close(): Unit = ()
  }

  /** True if an error concerns a record or a header. False, for example, if the file cannot be opened. */
  private def isOfParser(e: Exception): Boolean = e match {
    case _: SparkThrowable | _: TextParsingException | _: CharConversionException |
        _: IllegalArgumentException => true
    case _ => false
  }
}
