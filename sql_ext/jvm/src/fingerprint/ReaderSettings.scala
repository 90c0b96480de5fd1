package org.apache.spark.sql.sieve

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.mapreduce.util.ConfigUtil

import org.apache.spark.sql.internal.SQLConf

/**
 * The settings that decide what a reader makes of a file's bytes, as a session has them now: every
 * key that is set under the readers' prefixes, less those known to be harmless, so that a key nobody
 * here has heard of makes queries read. A key set to its own default is as good as not set, but for
 * the modes of rebasing, which have second names under which another value may stand.
 */
object ReaderSettings {
  // What the first read of any table does anyway: from then on Hadoop knows mapred-site.xml and the
  // old names of its keys. Before and after it, the same settings must give the same mark.
  ConfigUtil.loadResources()

  private val sqlPrefixes = Seq("parquet", "orc", "csv", "json", "files", "legacy", "variant", "defaultColumn")
    .map(p => s"spark.sql.$p.")
  private val sqlNames = Set("spark.sql.execution.datasources.hadoopLineRecordReader.enabled")

  // "hive.exec.orc." holds ORC's second names; keys of "hadoop.security.key." open encrypted columns.
  private val hadoopPrefixes =
    Seq("parquet.", "orc.", "hive.exec.orc.", "mapreduce.input.", "io.", "hadoop.security.key.")

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
    "spark.sql.json.filterPushdown.enabled", "spark.sql.legacy.bucketedTableScan.outputOrdering",
    "io.file.buffer.size")

  // Where the executors' Java gets its zone and its words for months and days from.
  private val executorOptions = Seq(
    "spark.executor.extraJavaOptions", "spark.executor.defaultJavaOptions",
    "spark.executorEnv.JAVA_TOOL_OPTIONS", "spark.executorEnv.JDK_JAVA_OPTIONS")
  private val localeOption = "-D(user\\.(timezone|language|country|variant|region)|java\\.locale\\.|file\\.encoding)\\S*".r

  /** Keys and values; equal maps, for one version of Spark, read equally. */
  def of(session: Compat.Session): Map[String, String] = {
    val set = session.sessionState.conf.getAllConfs
    sql(set) ++ hadoop(session.sparkContext.hadoopConfiguration, set) ++
      executors(k => session.sparkContext.conf.getOption(k))
  }

  private def sql(set: Map[String, String]): Map[String, String] = set.collect {
    case (k, v) if relevant(k) && !isDefault(k, v) => s"conf.$k" -> v
  }

  private def relevant(key: String): Boolean =
    (sqlNames(key) || sqlPrefixes.exists(p => key.startsWith(p)) ||
      hadoopPrefixes.exists(p => key.startsWith(s"spark.hadoop.$p"))) && !isHarmless(key)

  private def isHarmless(key: String): Boolean = harmless.exists(h =>
    if (h.endsWith("*")) key.startsWith(h.dropRight(1)) else h == key)

  private val unset = new SQLConf
  private def isDefault(key: String, value: String): Boolean =
    !key.endsWith("RebaseModeInRead") &&
      Try(unset.getConfString(key)).toOption.contains(value)

  /** What readers find in Hadoop's configuration: the context's, under the session's own keys. */
  private def hadoop(context: Configuration, set: Map[String, String]): Map[String, String] = {
    // Keys set under an old name take effect, and show here, under the new one too.
    val own = new Configuration(false)
    set.foreach { case (k, v) => if (!k.startsWith("spark.")) own.set(k, v) }
    def chosen(conf: Configuration): Map[String, String] = conf.iterator.asScala.collect {
      case e if hadoopPrefixes.exists(p => e.getKey.startsWith(p)) && !isHarmless(e.getKey) &&
          !shipped(conf, e.getKey) => s"hadoop.${e.getKey}" -> String.valueOf(e.getValue)
    }.toMap
    chosen(context) ++ chosen(own)
  }

  /** Whether a value stands only in the defaults that come with Hadoop's jars. */
  private def shipped(conf: Configuration, key: String): Boolean =
    Option(conf.getPropertySources(key)).flatMap(_.lastOption).exists(_.endsWith("-default.xml"))

  private def executors(option: String => Option[String]): Map[String, String] = {
    val found = executorOptions.flatMap(k => option(k).map(v => k -> localeOption.findAllIn(v).mkString(" ")))
    (found ++ option("spark.executorEnv.TZ").map("spark.executorEnv.TZ" -> _))
      .collect { case (k, v) if v.nonEmpty => s"conf.$k" -> v }.toMap
  }
}
