package org.apache.spark.sql.sieve.formats

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.csv.CSVOptions
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * CSV records that the parser may cut differently for a query that does not read all columns.
 *
 * Under column pruning, univocity skips the values of other columns by separate code. After some quoted
 * values, this code continues at a different place than the code that reads values. With `escape = '"'` this
 * happens after an empty value (`"",y,"a,b"`) and after a value with escaped quotes. With the default escape
 * it happens after a value that ends in an escaped backslash (`"y\\"`). With a delimiter of several
 * characters it also happens after line breaks. A record with a value that may have been written in one of
 * these ways counts as damaged.
 *
 * @param strings the positions of string columns; values of other types contain none of these characters
 * @param marks   the texts that no value is allowed to contain
 * @param broken  the texts that a value with a quote is not allowed to contain; empty if each record ends with its
 *                line
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
  // Replaces an empty value in quotes, which otherwise reads as NULL or as an empty string.
  private val empty = "\u0001sieve\u0001"

  /** The rule for a schema, and the options with which to read the schema's records. */
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
