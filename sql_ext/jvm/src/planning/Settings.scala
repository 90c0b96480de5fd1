package org.apache.spark.sql.sieve

import java.util.concurrent.{ConcurrentHashMap, TimeUnit}
import java.util.regex.Pattern

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.unsafe.types.UTF8String

/** A setting as `settings.json` describes it. */
final case class Setting(
    key: String, pattern: Pattern, allowed: String, default: Option[String], ifInvalid: Option[String],
    ofDriver: Boolean, doc: String) {
  def accepts(value: String): Boolean = pattern.matcher(value).matches
  def refusal(value: String): String = s"$key = '$value' is not valid; allowed: $allowed"
}

/**
 * The `spark.sieve.*` settings. Their list is `settings.json`, which the front end reads, too. Each
 * is an entry of Spark's configuration with a checked value: `SET`, `conf.set` and a connection
 * string fail for a wrong one. A wrong value of `spark-defaults.conf` or `--conf` is copied into
 * sessions and must not keep one from starting; scans ignore it, with one warning.
 */
object Settings extends Logging {
  private val prefix = "spark.sieve."
  private val known: Map[String, Setting] = {
    val list = Link.json.readTree(getClass.getResourceAsStream("settings.json"))
    val forms = list.get("forms")
    list.get("settings").fieldNames.asScala.map { key =>
      val told = list.get("settings").get(key)
      val form = forms.get(told.get("form").asText)
      def optional(name: String): Option[String] = Option(told.get(name)).map(_.asText)
      val default = optional("default")
      key -> Setting(
        key, Pattern.compile(form.get("pattern").asText), form.get("allowed").asText, default,
        optional("if_invalid").orElse(default), told.get("where").asText == "driver",
        told.get("doc").asText)
    }.toMap
  }
  private val warned = ConcurrentHashMap.newKeySet[String]()

  def enabled(s: SparkSession): Boolean = flag(s, "spark.sieve.enabled")
  def strict(s: SparkSession): Boolean = flag(s, "spark.sieve.strict")
  def required(s: SparkSession): Boolean = flag(s, "spark.sieve.require")
  def refreshAuto(s: SparkSession): Boolean = flag(s, "spark.sieve.refresh.auto")
  def pruneMillis(s: SparkSession): Long = millis(s, "spark.sieve.prune.timeout")
  def startMillis(s: SparkSession): Long = millis(s, "spark.sieve.start.timeout")
  /** From 0, no scan, to 1, each scan. */
  def auditSample(s: SparkSession): Double = valid(s, "spark.sieve.audit.sample").toDouble
  def registryMillis(s: SparkSession): Long = millis(s, "spark.sieve.registry.ttl")

  /** One child serves all sessions, so none of them chooses what it is: the driver's conf does. */
  def python(context: SparkContext): String = {
    val keys = Seq("spark.sieve.python", "spark.pyspark.driver.python", "spark.pyspark.python")
    keys.flatMap(k => context.getConf.getOption(k)).headOption
      .orElse(sys.env.get("PYSPARK_DRIVER_PYTHON")).orElse(sys.env.get("PYSPARK_PYTHON"))
      .getOrElse("python3")
  }

  /** What a session has set under our prefix, and is warned of where that has no effect. */
  def of(s: Compat.Session): Map[String, String] = {
    val set = s.sessionState.conf.getAllConfs.filter(_._1.startsWith(prefix))
    set.foreach { case (key, value) => inspect(key, value) }
    set
  }

  /** Warns once of a name under our prefix that is no setting's. */
  def inspectName(key: String): Unit =
    if (key.startsWith(prefix) && !known.contains(key)) {
      val like = UTF8String.fromString(key)
      val nearest = known.keys.minBy(k => UTF8String.fromString(k).levenshteinDistance(like))
      warn(s"there is no setting $key; did you mean $nearest?")
    }

  /** Likewise, and of a wrong value. */
  private def inspect(key: String, value: String): Unit = {
    inspectName(key)
    known.get(key).filterNot(_.accepts(value)).foreach { setting =>
      warn(setting.refusal(value) + setting.ifInvalid.fold("")(v => s"; queries run with $v"))
    }
  }

  /** Registers the entries, once a driver, and looks at what this one was started with. */
  def register(context: SparkContext): Unit = {
    registered
    context.conf.getAll.foreach { case (key, value) => inspect(key, value) }
  }

  private lazy val registered: Unit = known.values.foreach { setting =>
    // Without its entry a setting is checked by statements alone.
    try {
      val builder =
        if (setting.ofDriver) SQLConf.buildStaticConf(setting.key) else SQLConf.buildConf(setting.key)
      val entry = builder.doc(setting.doc).stringConf.transform { value =>
        if (!setting.accepts(value) && !isCopied(setting.key, value)) {
          throw new SieveException("SIEVE_INVALID_SETTING", setting.refusal(value), state = "22022")
        }
        value
      }
      setting.default.fold[Any](entry.createOptional)(entry.createWithDefault(_))
    } catch {
      case e @ (NonFatal(_) | _: LinkageError) => logWarning(s"sieve: SET does not check ${setting.key}: $e")
    }
  }

  /** Whether Spark copies a value into another session, or back to what the driver started with. */
  private def isCopied(key: String, value: String): Boolean =
    SparkContext.getActive.exists(_.conf.getOption(key).contains(value)) ||
      Thread.currentThread.getStackTrace.exists { frame =>
        frame.getClassName.startsWith(classOf[SQLConf].getName) && copies(frame.getMethodName)
      }
  private val copies = Set("clone", "mergeNonStaticSQLConfigs")

  // Nothing that is wrong here may fail a query.
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

  private def warn(text: String): Unit =
    if (warned.size < 1000 && warned.add(text)) logWarning(s"sieve: $text")
}
