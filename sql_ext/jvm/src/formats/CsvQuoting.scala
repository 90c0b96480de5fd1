package org.apache.spark.sql.sieve.formats

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.csv.CSVOptions
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Detects CSV records that Spark's parser may split differently if a query reads only some columns.
 *
 * With column pruning, the parser (univocity) skips the values of unused columns in a separate code path. After some
 * quoted values, the code path that skips values continues at a different position than the path that reads values.
 * With `escape = '"'`, the parser's paths differ after an empty value (`"",y,"a,b"`) and after a value with escaped
 * quotes. With the default escape, the parser's paths differ after a value that ends in an escaped backslash (`"y\\"`).
 * With a delimiter of several characters, the parser's paths also differ after line breaks. A record is doubtful, and
 * counts as damaged, if the parser's paths may differ after one of the record's values.
 *
 * @param strings the positions of the string columns; values of other types contain neither quotes nor escapes
 * @param marks   texts that make a record doubtful if a value contains one of them
 * @param broken  texts that make a record doubtful if a value contains both a quote and one of these texts; empty if a
 *                record cannot span several lines
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
  // The text that the parser returns for an empty value in quotes, instead of NULL or an empty string.
  private val empty = "\u0001sieve\u0001"

  /** Returns the quoting rule for a schema, and the reader options that this rule needs. */
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
