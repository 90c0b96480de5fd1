package org.apache.spark.sql.sieve.formats

import scala.jdk.CollectionConverters._
import scala.util.Try
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.mapreduce.util.ConfigUtil
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sieve.base.{Compat, Policy}

/**
 * The settings that decide how a session's reader interprets a file's bytes. These are all keys set
 * under the readers' prefixes, except keys known to be harmless. An unknown key therefore makes queries
 * read the files. A key set to its default counts as not set, except for the modes of rebasing, which
 * have alternative names under which another value may be set.
 */
object ReaderSettings {
  // The first read of any table loads these resources anyway: from then on, Hadoop knows
  // mapred-site.xml and the old names of its keys. Loading them here gives the same fingerprint before
  // and after the first read.
  ConfigUtil.loadResources()

  private val sqlPrefixes = Policy.texts("/reader/sql_prefixes")
  private val sqlNames = Policy.texts("/reader/sql_names").toSet
  private val hadoopPrefixes = Policy.texts("/reader/hadoop_prefixes")
  private val (harmlessPrefixes, harmlessNames) = Policy.texts("/reader/harmless").partition(_.endsWith("*"))
  private val executorOptions = Policy.texts("/reader/executor_options")
  private val executorVariables = Policy.texts("/reader/executor_variables")
  private val localeOption = Policy.at("/reader/locale_option").asText.r

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
    (sqlNames(key) || sqlPrefixes.exists(p => key.startsWith(p)) ||
      hadoopPrefixes.exists(p => key.startsWith(s"spark.hadoop.$p"))) && !isHarmless(key)

  private def isHarmless(key: String): Boolean =
    harmlessNames.contains(key) || harmlessPrefixes.exists(h => key.startsWith(h.dropRight(1)))

  private val unset = new SQLConf
  private def isDefault(key: String, value: String): Boolean =
    !key.endsWith("RebaseModeInRead") && Try(unset.getConfString(key)).toOption.contains(value)

  /**
   * The settings that readers find in Hadoop's configuration: the context's, overridden by the
   * session's own keys.
   */
  private def hadoop(context: Configuration, set: Map[String, String]): Map[String, String] = {
    // Keys set under an old name take effect, and appear here under the new name too.
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
