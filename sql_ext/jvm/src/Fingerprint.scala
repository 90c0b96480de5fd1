package org.apache.spark.sql.sieve

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.TimeZone

import scala.collection.immutable.TreeMap
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.sources.DataSourceRegister

/** All that decides which values a reader makes of a file's bytes; equal marks read equally. */
final case class Fingerprint(parts: TreeMap[String, String]) {
  lazy val hash: String = {
    val text = parts.map { case (k, v) => s"${k.length}:$k=${v.length}:$v" }.mkString("\n")
    MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8)).map("%02x".format(_)).mkString
  }
}

object Fingerprint {
  private val sqlPrefixes = Seq("parquet", "orc", "csv", "json", "files", "legacy", "variant", "defaultColumn")
    .map(p => s"spark.sql.$p.")
  private val hadoopPrefixes = Seq("parquet.", "orc.", "mapreduce.input.", "io.")
  private val byName = Set(
    "spark.sql.caseSensitive", "spark.sql.session.timeZone", "spark.sql.columnNameOfCorruptRecord",
    "spark.sql.timestampType", "spark.executor.extraJavaOptions", "spark.executor.defaultJavaOptions",
    "spark.executorEnv.TZ")

  // Settings under the prefixes that change how much is read at once, or only what is written, or
  // that can only make a reader see fewer rows of a file than the build saw.
  private val harmless = Seq(
    "spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes",
    "spark.sql.files.minPartitionNum", "spark.sql.files.maxPartitionNum",
    "spark.sql.files.maxRecordsPerFile", "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles", "spark.sql.parquet.filterPushdown",
    "spark.sql.parquet.filterPushdown.*", "spark.sql.parquet.aggregatePushdown",
    "spark.sql.parquet.recordLevelFilter.enabled", "spark.sql.parquet.pushdown.inFilterThreshold",
    "spark.sql.parquet.compression.codec", "spark.sql.parquet.columnarReaderBatchSize",
    "spark.sql.parquet.outputTimestampType", "spark.sql.parquet.writeLegacyFormat",
    "spark.sql.parquet.output.committer.class", "spark.sql.parquet.fieldId.write.enabled",
    "spark.sql.parquet.datetimeRebaseModeInWrite", "spark.sql.parquet.int96RebaseModeInWrite",
    "spark.sql.orc.filterPushdown", "spark.sql.orc.aggregatePushdown",
    "spark.sql.orc.compression.codec", "spark.sql.orc.columnarReaderBatchSize",
    "spark.sql.orc.columnarWriterBatchSize", "spark.sql.csv.filterPushdown.enabled",
    "spark.sql.json.filterPushdown.enabled", "spark.sql.legacy.bucketedTableScan.outputOrdering")

  private def relevant(key: String): Boolean =
    (byName(key) || sqlPrefixes.exists(p => key.startsWith(p)) ||
      hadoopPrefixes.exists(p => key.startsWith(p)) ||
      hadoopPrefixes.exists(p => key.startsWith(s"spark.hadoop.$p"))) &&
      !harmless.exists(h =>
        if (h.endsWith("*")) key.startsWith(h.dropRight(1)) else h == key)

  def format(relation: HadoopFsRelation): String = relation.fileFormat match {
    case named: DataSourceRegister => named.shortName().toLowerCase(java.util.Locale.ROOT)
    case other => other.getClass.getName
  }

  /** The mark of a relation as it would be read under the settings that `session` has now. */
  def of(relation: HadoopFsRelation, table: CatalogTable, session: Compat.Session): Fingerprint = {
    val kind = format(relation)
    val version = session.version
    val exact = kind == "csv" || kind == "json"
    val fixed = Seq(
      "format" -> s"$kind ${relation.fileFormat.getClass.getName}",
      "schema" -> relation.dataSchema.json,
      "partitions" -> relation.partitionSchema.json,
      "spark" -> (if (exact) version else version.split('.').take(2).mkString(".")),
      "zone.session" -> session.sessionState.conf.sessionLocalTimeZone,
      "zone.jvm" -> TimeZone.getDefault.getID,
      "ansi" -> (if (exact) session.sessionState.conf.ansiEnabled.toString else ""),
      "corrupt" -> session.sessionState.conf.columnNameOfCorruptRecord)
    val options = relation.options.toSeq.collect {
      case (k, v) if !k.equalsIgnoreCase("path") => s"option.${k.toLowerCase(java.util.Locale.ROOT)}" -> v
    }
    val sql = session.sessionState.conf.getAllConfs.toSeq.filter(e => relevant(e._1))
      .map(e => s"conf.${e._1}" -> e._2)
    val hadoop = session.sparkContext.hadoopConfiguration.iterator.asScala
      .filter(e => hadoopPrefixes.exists(p => e.getKey.startsWith(p)))
      .map(e => s"hadoop.${e.getKey}" -> String.valueOf(e.getValue)).toSeq
    Fingerprint(TreeMap((fixed ++ options ++ sql ++ hadoop): _*))
  }
}
