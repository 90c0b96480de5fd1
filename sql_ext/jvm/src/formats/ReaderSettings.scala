package org.apache.spark.sql.sieve.formats

import scala.jdk.CollectionConverters._
import scala.util.Try
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.mapreduce.util.ConfigUtil
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sieve.base.Compat

/**
 * The settings that decide how a session's reader interprets a file's bytes. These are all keys set under the
 * readers' prefixes, except keys known to be harmless. An unknown key therefore makes queries read the files.
 * A key set to its default counts as not set. The modes of rebasing are an exception, because another value
 * may be set under their alternative names.
 */
object ReaderSettings {
  // The first read of any table loads these resources anyway: from then on, Hadoop knows
  // mapred-site.xml and the old names of its keys. Loading them here gives the same fingerprint before
  // and after the first read.
  ConfigUtil.loadResources()

  private val sqlPrefixes = Seq("parquet", "orc", "csv", "json", "avro", "files", "legacy", "variant",
    "defaultColumn").map(name => s"spark.sql.$name.")
  private val lineReader = "spark.sql.execution.datasources.hadoopLineRecordReader.enabled"
  /** The prefix hive.exec.orc. has ORC's alternative names. Settings under hadoop.security.key. decrypt columns. */
  private val hadoopPrefixes =
    Seq("parquet.", "orc.", "hive.exec.orc.", "mapreduce.input.", "io.", "hadoop.security.key.")
  /**
   * Harmless settings. They change how much is read at once, which folders are listed, how servers describe
   * columns, or only what is written. Or they can only make a reader see fewer rows of a file than the build
   * saw.
   */
  private val harmless = Set("files.maxPartitionBytes", "files.openCostInBytes", "files.minPartitionNum",
    "files.maxPartitionNum", "files.maxRecordsPerFile", "files.ignoreCorruptFiles", "files.ignoreMissingFiles",
    "files.ignoreInvalidPartitionPaths", "legacy.hive.thriftServer.useZeroBasedColumnOrdinalPosition",
    "parquet.filterPushdown", "parquet.aggregatePushdown", "parquet.recordLevelFilter.enabled",
    "parquet.pushdown.inFilterThreshold", "parquet.compression.codec", "parquet.columnarReaderBatchSize",
    "parquet.outputTimestampType", "parquet.writeLegacyFormat", "parquet.output.committer.class",
    "parquet.fieldId.write.enabled", "parquet.datetimeRebaseModeInWrite", "parquet.int96RebaseModeInWrite",
    "orc.filterPushdown", "orc.aggregatePushdown", "orc.compression.codec", "orc.columnarReaderBatchSize",
    "orc.columnarWriterBatchSize", "csv.filterPushdown.enabled", "json.filterPushdown.enabled",
    "legacy.bucketedTableScan.outputOrdering").map("spark.sql." + _) + "io.file.buffer.size"
  private val harmlessPrefix = "spark.sql.parquet.filterPushdown."
  /** These settings give the executors' Java its time zone and its names of months and days. */
  private val executorOptions = Seq("spark.executor.extraJavaOptions", "spark.executor.defaultJavaOptions",
    "spark.executorEnv.JAVA_TOOL_OPTIONS", "spark.executorEnv.JDK_JAVA_OPTIONS")
  private val executorVariables = Seq("spark.executorEnv.TZ")
  private val localeOption =
    """-D(user\.(timezone|language|country|variant|region)|java\.locale\.|file\.encoding)\S*""".r

  /** Keys and values; for one version of Spark, equal maps mean equal reading. */
  def of(session: Compat.Session): Map[String, String] = {
    val set = session.sessionState.conf.getAllConfs
    sql(set) ++ hadoop(session.sparkContext.hadoopConfiguration, set) ++
      executors(session.sparkContext.conf.getOption)
  }

  private def sql(set: Map[String, String]): Map[String, String] = set.collect {
    case (k, v) if relevant(k) && !isDefault(k, v) => s"conf.$k" -> v
  }

  private def relevant(key: String): Boolean =
    (key == lineReader || sqlPrefixes.exists(p => key.startsWith(p)) ||
      hadoopPrefixes.exists(p => key.startsWith(s"spark.hadoop.$p"))) && !isHarmless(key)

  private def isHarmless(key: String): Boolean =
    harmless(key) || key.startsWith(harmlessPrefix)

  private val unset = new SQLConf
  private def isDefault(key: String, value: String): Boolean =
    !key.endsWith("RebaseModeInRead") && Try(unset.getConfString(key)).toOption.contains(value)

  /**
   * The settings that readers find in Hadoop's configuration: the context's, overridden by the
   * session's own keys.
   */
  private def hadoop(context: Configuration, set: Map[String, String]): Map[String, String] = {
    // A key that is set under its old name takes effect, and appears here under the new name, too.
    val own = new Configuration(false)
    set.foreach { case (k, v) => if (!k.startsWith("spark.")) own.set(k, v) }
    def chosen(conf: Configuration): Map[String, String] = conf.iterator.asScala.collect {
      case e if hadoopPrefixes.exists(p => e.getKey.startsWith(p)) && !isHarmless(e.getKey) &&
          !shipped(conf, e.getKey) => s"hadoop.${e.getKey}" -> String.valueOf(e.getValue)
    }.toMap
    chosen(context) ++ chosen(own)
  }

  /** Whether a value comes only from the defaults in Hadoop's jars. */
  private def shipped(conf: Configuration, key: String): Boolean =
    Option(conf.getPropertySources(key)).flatMap(_.lastOption).exists(_.endsWith("-default.xml"))

  private def executors(option: String => Option[String]): Map[String, String] = {
    val options = for (k <- executorOptions; v <- option(k)) yield k -> localeOption.findAllIn(v).mkString(" ")
    val variables = for (k <- executorVariables; v <- option(k)) yield k -> v
    (options ++ variables).collect { case (k, v) if v.nonEmpty => s"conf.$k" -> v }.toMap
  }
}
