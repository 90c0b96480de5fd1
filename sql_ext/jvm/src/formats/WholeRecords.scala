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
 * A text format, CSV or JSON, that reads every column of a record, whatever columns a plan needs.
 *
 * Spark's result for a damaged record depends on the columns that a query reads. For `{"a":9,"t":"\q"}`, a
 * query of `a` alone gets NULL, since the JSON parser fails where it skips `t`, and a query of `a` and `t`
 * gets 9. A record without an error in any column gives all queries the same values: a parser that converts
 * every column without an error also skips each column without an error (for exceptions in CSV, see
 * `CsvQuoting`). Therefore the rows of a file are valid for every query if no record of the file has an
 * error. Otherwise they prove nothing.
 *
 * A plan that reads the column `damaged` gets records read whole, in mode FAILFAST. At the first error, the
 * reader returns one row in which `damaged` is true. It skips the rest of the file, or the rest of the part
 * that a task reads. A plan without this column only samples. It reads like `inner` in mode PERMISSIVE, and
 * ends early at an error that does not concern a single record.
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
      // The column with the text of a damaged record is not in the file.
      val sqlConf = session.asInstanceOf[Compat.Session].sessionState.conf
      val record = WholeRecords.corruptColumn(options, sqlConf)
      val all = StructType(columns.filterNot(_.name == record))
      val (quoting, own) = if (isCsv) {
        val (rule, changed) = CsvQuoting.of(all, in(FailFastMode), sqlConf)
        (Some(rule), changed)
      } else (None, in(FailFastMode))
      val read = inner.buildReaderWithPartitionValues(session, all, partitionSchema, all, Nil, own, conf)
      /**
       * The needed columns of a row, damaged or not, and the partition values, which begin at `from`.
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
  /** The column that marks a damaged record; no table has a column of this name, see `Fingerprint`. */
  val damaged = "__sieve_damaged__"
  private val formats = Set("csv", "json")

  /** The options with one option changed, in whatever case the options have its name. */
  def set(options: Map[String, String], name: String, value: String): Map[String, String] =
    options.filterNot { case (k, _) => k.equalsIgnoreCase(name) } + (name -> value)

  /**
   * The relation whose records are read whole if a plan reads `damaged`; other formats are unchanged.
   */
  def of(relation: HadoopFsRelation): HadoopFsRelation =
    if (!isText(relation)) relation
    else relation.copy(
      dataSchema = relation.dataSchema.add(damaged, BooleanType, nullable = false),
      fileFormat = new WholeRecords(
        relation.fileFormat, Fingerprint.format(relation) == "csv"))(relation.sparkSession)

  def isText(relation: HadoopFsRelation): Boolean = formats(Fingerprint.format(relation))

  /** The name of the column that holds damaged records, if a table has this column. */
  def corruptColumn(options: Map[String, String], conf: SQLConf): String =
    CaseInsensitiveMap(options).getOrElse("columnNameOfCorruptRecord", conf.columnNameOfCorruptRecord)

  /**
   * The rows up to the first record with an error, and the row `broken`, if given, instead of that
   * record.
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

  /** Whether an error concerns a record or a header, and not a file that cannot be read. */
  private def isOfParser(e: Exception): Boolean = e match {
    case _: SparkThrowable | _: TextParsingException | _: CharConversionException |
        _: IllegalArgumentException => true
    case _ => false
  }
}
