package org.apache.spark.sql.sieve.formats

import scala.jdk.CollectionConverters._
import scala.util.Try
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.mapreduce.util.ConfigUtil
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sieve.base.Compat

/**
 * The settings that decide how a session's reader interprets a file's bytes. `of` returns all keys with a reader's
 * prefix, except keys that are known to be harmless. So if a query sets an unknown key, its fingerprint matches no
 * index, and the query reads all files. A key with its default value counts as not set. The keys of the rebase modes
 * always count as set, because alternative names of these keys can have other values.
 */
object ReaderSettings {
  // Loads mapred-site.xml and the deprecated names of Hadoop's keys. Otherwise, Spark's first read of a table would
  // load them, and so change the fingerprint.
  ConfigUtil.loadResources()

  private val sqlPrefixes = Seq("parquet", "orc", "csv", "json", "avro", "files", "legacy", "variant",
    "defaultColumn").map(name => s"spark.sql.$name.")
  private val lineReader = "spark.sql.execution.datasources.hadoopLineRecordReader.enabled"
  /**
   * hive.exec.orc. is the prefix of alternative names for ORC's settings. hadoop.security.key. is the prefix of
   * settings for the decryption of columns.
   */
  private val hadoopPrefixes =
    Seq("parquet.", "orc.", "hive.exec.orc.", "mapreduce.input.", "io.", "hadoop.security.key.")
  /**
   * Settings that cannot make a query lose rows, even if they differ between the build and the query. Most harmless
   * settings decide how much is read at once, which folders are listed, how servers describe columns, or how files are
   * written. With the other harmless settings, a query's reader can only return fewer rows of a file than the build's
   * reader.
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
  /** The settings that determine the time zone, and the names of months and days, in an executor's JVM. */
  private val executorOptions = Seq("spark.executor.extraJavaOptions", "spark.executor.defaultJavaOptions",
    "spark.executorEnv.JAVA_TOOL_OPTIONS", "spark.executorEnv.JDK_JAVA_OPTIONS")
  private val executorVariables = Seq("spark.executorEnv.TZ")
  private val localeOption =
    """-D(user\.(timezone|language|country|variant|region)|java\.locale\.|file\.encoding)\S*""".r

  /**
   * Returns the reader settings of a session. In the same version of Spark, two sessions with equal reader settings
   * read a file in the same way.
   */
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
  /** True if a setting has its default value. */
  def isDefault(key: String, value: String): Boolean =
    !key.endsWith("RebaseModeInRead") && Try(unset.getConfString(key)).toOption.contains(value)

  /** The reader settings in Hadoop's configuration. A session's keys override the keys of the Spark context. */
  private def hadoop(context: Configuration, set: Map[String, String]): Map[String, String] = {
    // If the user sets a key by its deprecated name, Hadoop's `Configuration` also adds the current name of the key.
    val own = new Configuration(false)
    set.foreach { case (k, v) => if (!k.startsWith("spark.")) own.set(k, v) }
    def chosen(conf: Configuration): Map[String, String] = conf.iterator.asScala.collect {
      case e if hadoopPrefixes.exists(p => e.getKey.startsWith(p)) && !isHarmless(e.getKey) &&
          !shipped(conf, e.getKey) => s"hadoop.${e.getKey}" -> String.valueOf(e.getValue)
    }.toMap
    chosen(context) ++ chosen(own)
  }

  /** True if the value of a key comes from the default files in Hadoop's jars, and from no other source. */
  private def shipped(conf: Configuration, key: String): Boolean =
    Option(conf.getPropertySources(key)).flatMap(_.lastOption).exists(_.endsWith("-default.xml"))

  /** The executors' settings for their time zone and locale. */
  def executors(option: String => Option[String]): Map[String, String] = {
    val options = for (k <- executorOptions; v <- option(k)) yield k -> localeOption.findAllIn(v).mkString(" ")
    val variables = for (k <- executorVariables; v <- option(k)) yield k -> v
    (options ++ variables).collect { case (k, v) if v.nonEmpty => s"conf.$k" -> v }.toMap
  }
}
