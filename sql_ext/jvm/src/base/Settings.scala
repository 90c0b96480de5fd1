package org.apache.spark.sql.sieve.base

import java.util.concurrent.{ConcurrentHashMap, TimeUnit}
import java.util.regex.Pattern
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.command.ResetCommand
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.unsafe.types.UTF8String

/** A setting that `settings.json` describes. */
final class Setting(val key: String, spec: JsonNode, form: JsonNode) {
  private val pattern = Pattern.compile(form.get("pattern").asText)
  private def optional(name: String): Option[String] = Option(spec.get(name)).map(_.asText)
  val default: Option[String] = optional("default")
  val ifInvalid: Option[String] = optional("if_invalid").orElse(default)
  def isStatic: Boolean = spec.get("where").asText == "driver"
  def doc: String = spec.get("doc").asText
  def accepts(value: String): Boolean = pattern.matcher(value).matches
  def refusal(value: String): String = s"$key = '$value' is not valid; allowed: ${form.get("allowed").asText}"
}

/** Logs each warning text only once. After 1,000 different texts, no further text is logged. */
trait OnceLogging extends Logging {
  private val logged = ConcurrentHashMap.newKeySet[String]()
  protected def warnOnce(text: String): Unit =
    if (logged.size < 1000 && logged.add(text)) logWarning(s"sieve: $text")
}

/**
 * The `spark.sieve.*` settings. `settings.json` lists the settings, and the front end reads the same file. This object
 * registers each setting in Spark's configuration, together with a check of the value. As a result, `SET`, `conf.set`
 * and a connection string fail for an invalid value. Spark also copies values from `spark-defaults.conf` and `--conf`
 * into new sessions. The check ignores copied values, because a session must start even if a copied value is invalid. A
 * scan that finds an invalid value uses a valid value instead, and logs one warning.
 */
object Settings extends OnceLogging {
  private val prefix = "spark.sieve."
  private val known: Map[String, Setting] = {
    val list = Json.resource("settings.json")
    list.get("settings").fieldNames.asScala.map { key =>
      val spec = list.get("settings").get(key)
      key -> new Setting(key, spec, list.get("forms").get(spec.get("form").asText))
    }.toMap
  }

  def enabled(s: SparkSession): Boolean = flag(s, "spark.sieve.enabled")
  def strict(s: SparkSession): Boolean = flag(s, "spark.sieve.strict")
  def required(s: SparkSession): Boolean = flag(s, "spark.sieve.require")
  /** True if scans may skip files by values that become known only at run time, such as join keys. */
  def joinPruning(s: SparkSession): Boolean =
    joinAlways(s) || valid(s, "spark.sieve.join.pruning").trim.equalsIgnoreCase("auto")
  /**
   * True if Sieve always reads the keys of joins, even if reading the keys may cost more time than the skipped files
   * save.
   */
  def joinAlways(s: SparkSession): Boolean =
    valid(s, "spark.sieve.join.pruning").trim.equalsIgnoreCase("always")
  /** True if Sieve skips files for top-k queries, which use MIN, MAX, or ORDER BY with LIMIT. */
  def topPruning(s: SparkSession): Boolean =
    valid(s, "spark.sieve.top.pruning").trim.equalsIgnoreCase("auto")
  def refreshAuto(s: SparkSession): Boolean = flag(s, "spark.sieve.refresh.auto")
  def pruneMillis(s: SparkSession): Long = millis(s, "spark.sieve.prune.timeout")
  def startMillis(s: SparkSession): Long = millis(s, "spark.sieve.start.timeout")
  def registryMillis(s: SparkSession): Long = millis(s, "spark.sieve.registry.ttl")
  /** The share of scans that Sieve audits, from 0 to 1. */
  def auditSample(s: SparkSession): Double = valid(s, "spark.sieve.audit.sample").toDouble

  /**
   * True if Sieve saves the record of the driver's scans. Only the driver's setting counts, because all sessions share
   * the record.
   */
  def history(context: SparkContext): Boolean =
    context.getConf.get("spark.sieve.history", "").trim.equalsIgnoreCase("true")

  /**
   * The Python interpreter that runs the front end. Only the driver's setting counts, because all sessions share one
   * front end.
   */
  def python(context: SparkContext): String =
    Seq("spark.sieve.python", "spark.pyspark.driver.python", "spark.pyspark.python")
      .flatMap(context.getConf.getOption(_))
      .++(Seq("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON").flatMap(sys.env.get(_)))
      .headOption.getOrElse("python3")

  /**
   * The session's settings with the prefix `spark.sieve.`. Logs a warning for each unknown name and each invalid value.
   */
  def of(s: Compat.Session): Map[String, String] = {
    val set = s.sessionState.conf.getAllConfs.filter(_._1.startsWith(prefix))
    set.foreach { case (key, value) => inspect(key, value) }
    set
  }

  /** A warning if `key` has the prefix `spark.sieve.` and names no setting. The result is None for any other key. */
  def unknown(key: String): Option[String] =
    if (!key.startsWith(prefix) || known.contains(key)) None
    else {
      val typed = UTF8String.fromString(key)
      val nearest = known.keys.minBy(k => UTF8String.fromString(k).levenshteinDistance(typed))
      Some(s"there is no setting $key; did you mean $nearest?")
    }

  private def inspect(key: String, value: String): Unit = {
    unknown(key).foreach(warnOnce)
    known.get(key).filterNot(_.accepts(value)).foreach { setting =>
      warnOnce(setting.refusal(value) + setting.ifInvalid.fold("")(v => s"; queries run with $v"))
    }
  }

  /**
   * Registers the settings in Spark's configuration, once per JVM. Logs a warning for each wrong setting of the driver.
   */
  def register(context: SparkContext): Unit = {
    registered
    context.conf.getAll.foreach { case (key, value) => inspect(key, value) }
  }

  private lazy val registered: Unit = known.values.foreach { setting =>
    // If Spark cannot register a setting, only SIEVE statements check the setting's value.
    try {
      val builder =
        if (setting.isStatic) SQLConf.buildStaticConf(setting.key) else SQLConf.buildConf(setting.key)
      val entry = builder.doc(setting.doc).stringConf.transform { value =>
        if (!setting.accepts(value) && !isCopied)
          throw new SieveException("SIEVE_INVALID_SETTING", setting.refusal(value), state = "22022")
        value
      }
      setting.default.fold[Any](entry.createOptional)(entry.createWithDefault(_))
    } catch {
      case e @ (NonFatal(_) | _: LinkageError) => logWarning(s"sieve: SET does not check ${setting.key}: $e")
    }
  }

  /** True if the current call copies a setting from the driver, or from another session, into a session. */
  private def isCopied: Boolean = Thread.currentThread.getStackTrace.exists { frame =>
    copies.exists { case (name, methods) => frame.getClassName.startsWith(name) && methods(frame.getMethodName) }
  }
  private val copies = Seq(
    classOf[SQLConf].getName -> Set("clone", "mergeSparkConf", "mergeNonStaticSQLConfigs"),
    classOf[ResetCommand].getName -> Set("run"))

  /**
   * Returns the value of a setting. If the value is invalid, returns the setting's `ifInvalid` instead. An invalid
   * value must not make queries fail.
   */
  private def valid(s: SparkSession, key: String): String = {
    val setting = known(key)
    val value = s.conf.getOption(key).filter(_ != null).orElse(setting.default)
    value.filter(setting.accepts).orElse {
      value.foreach(inspect(key, _))
      setting.ifInvalid
    }.getOrElse("")
  }

  private def flag(s: SparkSession, key: String): Boolean = valid(s, key).trim.equalsIgnoreCase("true")

  private def millis(s: SparkSession, key: String): Long =
    JavaUtils.timeStringAs(valid(s, key).replaceAll("\\s", ""), TimeUnit.MILLISECONDS)
}
