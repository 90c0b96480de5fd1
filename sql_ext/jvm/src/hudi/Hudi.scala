package org.apache.spark.sql.sieve

import java.util.{Date, Locale, Properties}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation}

/**
 * Hudi tables as Spark reads them: a relation of files whose listing is a class of Hudi's own. Its
 * jar is the user's, of whatever version, so what is asked of it is asked by name.
 */
object Hudi {
  // 8 is the first of which each log file is written by one commit and listed once that is complete.
  private val versions = Set("8", "9")

  // Properties of the table that readers of its data do not go by.
  private val harmlessProperties = Set(
    "hoodie.table.checksum", "hoodie.table.metadata.partitions",
    "hoodie.table.metadata.partitions.inflight", "hoodie.table.index.defs.path",
    "hoodie.table.secondary.indexes.metadata", "hoodie.archivelog.folder")

  // Settings of writers, table services and of listing.
  private val harmlessSettings = Seq(
    "hoodie.datasource.write.", "hoodie.datasource.hive_sync.", "hoodie.datasource.meta.sync.",
    "hoodie.meta.sync.", "hoodie.insert.", "hoodie.upsert.", "hoodie.delete.", "hoodie.bulkinsert.",
    "hoodie.compact.", "hoodie.clustering.", "hoodie.clean.", "hoodie.cleaner.",
    "hoodie.keep.", "hoodie.archive.", "hoodie.rollback.", "hoodie.parquet.", "hoodie.logfile.",
    "hoodie.copyonwrite.", "hoodie.index.", "hoodie.bloom.", "hoodie.metadata.",
    "hoodie.enable.data.skipping", "hoodie.fileindex.", "hoodie.spark.sql.", "hoodie.sql.",
    "hoodie.write.concurrency.", "hoodie.write.lock.", "hoodie.write.markers.",
    "hoodie.write.commit.callback.", "hoodie.embed.", "hoodie.filesystem.view.", "hoodie.memory.")

  // Of what is set for writers, what a reader that merges may go by, too.
  private val choosing = Seq("payload", "precombine", "ordering", "merge")

  /** Listings of snapshots, now or at an instant; those of changes between instants are others. */
  def is(location: FileIndex): Boolean =
    location.getClass.getName == "org.apache.hudi.HoodieFileIndex"

  /** Why a table cannot be indexed; None if it can. */
  def refusal(relation: HadoopFsRelation): Option[String] = {
    val table = properties(relation)
    def has(key: String, value: String) = Option(table.getProperty(key)).exists(_.equalsIgnoreCase(value))
    val version = table.getProperty("hoodie.table.version")
    if (!versions(version)) Some(s"version $version")
    else if (table.getProperty("hoodie.bootstrap.base.path") != null) Some("bootstrap")
    else if (has("hoodie.table.multiple.base.file.formats.enable", "true")) Some("formats several")
    else Option(table.getProperty("hoodie.table.base.file.format")).filterNot(_.equalsIgnoreCase("PARQUET"))
      .map(other => s"formats $other")
  }

  /** Whether readers do not go by a setting, of a session or an option of a table. */
  def isHarmless(setting: String): Boolean = {
    val key = setting.toLowerCase(Locale.ROOT)
    harmlessSettings.exists(key.startsWith) &&
      !(key.startsWith("hoodie.datasource.write.") && choosing.exists(key.contains))
  }

  /** What decides, beside what decides of Parquet, which rows a reader makes of a slice. */
  def marks(relation: HadoopFsRelation, settings: Map[String, String]): Map[String, String] = {
    val table = properties(relation).asScala.toMap.collect {
      case (k, v) if !harmlessProperties(k) => s"hudi.$k" -> v
    }
    val set = settings.collect {
      case (k, v) if k.startsWith("hoodie.") && !isHarmless(k) => s"conf.$k" -> v
    }
    // Columns that were dropped and added again differ from what they were in their ids alone.
    val ids = call(field(relation, "tableSchema"), "internalSchema")
    table ++ set + ("hudi.columns" -> ids.toString)
  }

  /**
   * Whether each record that is shown was written as it is, by one write: the others of its key may hide
   * it but do not change it. Which of them is shown hangs on all that was ever written of the key.
   */
  def takesWholeRecords(relation: HadoopFsRelation): Boolean = {
    val table = properties(relation).asScala
    val set = relation.sparkSession.sessionState.conf.getAllConfs ++ relation.options
    // What a reader is told of merging must be what the table says, too.
    val other = set.exists { case (k, v) =>
      k.startsWith("hoodie.") && Seq("payload", "merge").exists(k.contains) && !isHarmless(k) &&
        !table.get(k).contains(v)
    }
    table.get("hoodie.record.merge.mode").exists(ordering) && !other &&
      !table.keys.exists(_.contains("partial"))
  }

  private val ordering = Set("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING")

  /** The instant after which a reader passes over what log files hold. */
  def instant(relation: HadoopFsRelation): String = field(relation, "queryTimestamp").toString

  /** When the newest commit was complete that the relation shows, ms since the epoch. */
  def completed(relation: HadoopFsRelation): Option[Long] = {
    val until = instant(relation)
    val done = call(call(client(relation), "getCommitsTimeline"), "filterCompletedInstants")
    call(done, "getInstants").asInstanceOf[java.util.List[AnyRef]].asScala
      .filter(call(_, "requestedTime").toString <= until)
      .flatMap(completion(relation, _)).reduceOption(_ max _)
  }

  /** When a commit was complete, ms since the epoch; None where that is not told. */
  def completion(relation: HadoopFsRelation, instant: AnyRef): Option[Long] =
    Option(call(instant, "getCompletionTime")).map { digits =>
      val generator = relation.location.getClass.getClassLoader
        .loadClass("org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator")
      generator.getMethod("parseDateFromInstantTime", classOf[String]).invoke(null, digits.toString)
        .asInstanceOf[Date].getTime
    }

  /** Whether a query is of an earlier instant. */
  def isAsOf(relation: HadoopFsRelation): Boolean =
    is(relation.location) && relation.options.contains("as.of.instant")

  /** When the newest commit was complete that such a query shows; None for any other. */
  def asOf(relation: HadoopFsRelation): Option[Long] =
    if (isAsOf(relation)) completed(relation) else None

  /** Hudi's own view of the table: its folder, properties and timeline. */
  def client(relation: HadoopFsRelation): AnyRef = call(relation.location, "metaClient")

  private def properties(relation: HadoopFsRelation): Properties =
    call(call(client(relation), "getTableConfig"), "getProps").asInstanceOf[Properties]

  private def field(relation: HadoopFsRelation, name: String): AnyRef = {
    val found = relation.fileFormat.getClass.getDeclaredField(name)
    found.setAccessible(true)
    found.get(relation.fileFormat)
  }

  /** Whether a value is of a class of Hudi's. */
  def isOwn(value: AnyRef): Boolean = value.getClass.getName.startsWith("org.apache.hudi.")

  /** What is in an option of Hudi's kind. */
  def option(of: AnyRef): Option[AnyRef] =
    if (call(of, "isPresent") == true) Some(call(of, "get")) else None

  /** What a public method without arguments returns. */
  def call(of: AnyRef, method: String): AnyRef = of.getClass.getMethod(method).invoke(of)
}
