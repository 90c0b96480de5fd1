package org.apache.spark.sql.sieve.formats

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.csv.CSVOptions
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * CSV records that the parser may cut otherwise for a query that does not want all columns.
 *
 * Under column pruning univocity skips the values of other columns by code of its own. After some quoted
 * values it goes on at another place than it does after reading them: with `escape = '"'` after an empty
 * one (`"",y,"a,b"`) and after one with escaped quotes, with the default escape after one that ends in
 * an escaped backslash (`"y\\"`), with a delimiter of several characters after line breaks, too. A record
 * with a value that may have been written so counts as damaged.
 *
 * @param strings places of the columns of text; a value of another type has none of these characters
 * @param marks   what no value may contain
 * @param broken  what no value may contain beside a quote; none where records end with their lines
 */
class CsvQuoting(strings: Seq[Int], marks: Seq[UTF8String], quote: UTF8String, broken: Seq[UTF8String])
    extends Serializable {
  def isDoubtful(row: InternalRow): Boolean = strings.exists { k =>
    !row.isNullAt(k) && {
      val value = row.getUTF8String(k)
      marks.exists(mark => value.contains(mark)) ||
        value.contains(quote) && broken.exists(mark => value.contains(mark))
    }
  }
}

object CsvQuoting {
  // Stands for an empty value in quotes, which shows as NULL or as an empty text otherwise.
  private val empty = "\u0001sieve\u0001"

  /** The rule for a schema, and the options to read its records with. */
  def of(schema: StructType, options: Map[String, String], conf: SQLConf): (CsvQuoting, Map[String, String]) = {
    val csv = new CSVOptions(options, true, conf.sessionLocalTimeZone, conf.columnNameOfCorruptRecord)
    val format = csv.asParserSettings.getFormat
    val (quote, escape, delimiter) =
      (format.getQuote.toString, format.getQuoteEscape.toString, format.getDelimiterString)
    val escapes = Seq(escape, format.getCharToEscapeQuoteEscaping.toString).filter(_ != "\u0000")
    val strings = schema.zipWithIndex.collect { case (f, k) if f.dataType.isInstanceOf[StringType] => k }
    val longDelimiter = delimiter.length > 1
    val strict = longDelimiter || quote == escape
    val marks = escapes ++ (if (strict) Seq(quote, empty) else Nil) ++
      (if (longDelimiter) delimiter.map(_.toString) ++ Seq("\n", "\r") else Nil)
    val broken = if (csv.multiLine) Seq("\n", "\r") else Nil
    def bytes(texts: Seq[String]) = texts.distinct.map(UTF8String.fromString).toList
    val rule = new CsvQuoting(strings.toList, bytes(marks), UTF8String.fromString(quote), bytes(broken))
    (rule, if (strict) WholeRecords.set(options, "emptyValue", empty) else options)
  }
}
