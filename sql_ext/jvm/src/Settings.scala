package org.apache.spark.sql.sieve

import java.util.concurrent.TimeUnit

import scala.util.Try

import org.apache.spark.SparkContext
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.SparkSession

/** The `spark.sieve.*` settings that act inside the JVM, as the session has them now. */
object Settings {
  def enabled(s: SparkSession): Boolean = flag(s, "spark.sieve.enabled", default = true)
  def strict(s: SparkSession): Boolean = flag(s, "spark.sieve.strict", default = false)
  def required(s: SparkSession): Boolean = flag(s, "spark.sieve.require", default = false)
  def refreshAuto(s: SparkSession): Boolean = flag(s, "spark.sieve.refresh.auto", default = false)
  def pruneMillis(s: SparkSession): Long = millis(s, "spark.sieve.prune.timeout", "500ms")
  def startMillis(s: SparkSession): Long = millis(s, "spark.sieve.start.timeout", "20s")
  /** From 0, no scan, to 1, each scan; what is no number counts as 0. */
  def auditSample(s: SparkSession): Double =
    s.conf.getOption("spark.sieve.audit.sample").flatMap(v => Try(v.toDouble).toOption).getOrElse(0.0)
  def registryMillis(s: SparkSession): Long = millis(s, "spark.sieve.registry.ttl", "30s")

  /** One child serves all sessions, so none of them chooses what it is: the driver's conf does. */
  def python(context: SparkContext): String = {
    val keys = Seq("spark.sieve.python", "spark.pyspark.driver.python", "spark.pyspark.python")
    keys.flatMap(k => context.getConf.getOption(k)).headOption
      .orElse(sys.env.get("PYSPARK_DRIVER_PYTHON")).orElse(sys.env.get("PYSPARK_PYTHON"))
      .getOrElse("python3")
  }

  // An unreadable switch must not fail a query: it counts as off, which is always right.
  private def flag(s: SparkSession, key: String, default: Boolean): Boolean =
    s.conf.getOption(key).fold(default)(v => v.trim.equalsIgnoreCase("true"))

  private def millis(s: SparkSession, key: String, default: String): Long =
    try JavaUtils.timeStringAs(s.conf.get(key, default), TimeUnit.MILLISECONDS)
    catch {
      case _: NumberFormatException => JavaUtils.timeStringAs(default, TimeUnit.MILLISECONDS)
    }
}
