package org.apache.spark.sql.sieve

import java.util.{LinkedHashMap => LruMap, Locale, Map => JMap}
import java.util.concurrent.{Executors, ThreadFactory}
import java.util.concurrent.atomic.AtomicLong

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.catalog.CatalogTable

/** A table by name as the session catalog tells it apart: lower case, catalog first. */
final case class TableKey(application: String, catalog: String, database: String, table: String)

/** The indexes a table has (property name -> registration), and when that was last read. */
final case class Entry(registrations: Map[String, String], epoch: Long, readAt: Long)

/**
 * Which tables have indexes, for the whole driver: an open session keeps the table properties it
 * first saw, so they alone would hide an index made later. Tables without one are kept too, so that
 * a scan of them costs one look-up; entries past their time are read again in the background.
 */
object Registry extends Logging {
  val prefix = "sieve.index."
  private val capacity = 10000
  private val epochs = new AtomicLong
  private val entries = new LruMap[TableKey, Entry](64, 0.75f, true) {
    override def removeEldestEntry(e: JMap.Entry[TableKey, Entry]): Boolean = size > capacity
  }
  private val reader = Executors.newSingleThreadExecutor(new ThreadFactory {
    override def newThread(r: Runnable): Thread = {
      val t = new Thread(r, "sieve-registry"); t.setDaemon(true); t
    }
  })
  private var reading = Set.empty[TableKey]
  private val statements = new Object

  private def lower(s: String): String = s.toLowerCase(Locale.ROOT)

  def key(session: Compat.Session, table: CatalogTable): TableKey =
    TableKey(
      session.sparkContext.applicationId, lower(table.identifier.catalog.getOrElse("spark_catalog")),
      lower(table.identifier.database.getOrElse("default")), lower(table.identifier.table))

  def registrations(table: CatalogTable): Map[String, String] =
    table.properties.filter(_._1.startsWith(prefix)).toMap

  /** The table's entry if it has an index; never waits for the metastore. */
  def find(session: Compat.Session, table: CatalogTable): Option[Entry] = {
    val k = key(session, table)
    val entry = synchronized(Option(entries.get(k)).getOrElse(put(k, registrations(table))))
    if (System.currentTimeMillis - entry.readAt > Settings.registryMillis(session)) {
      readAgain(session, table, k)
    }
    if (entry.registrations.isEmpty) None else Some(entry)
  }

  /** One statement reads and puts at a time, so that the later read is the one that stays. */
  def synchronizedWithMetastore[A](readAndPut: => A): A = statements.synchronized(readAndPut)

  /** Makes what a statement has just written known to every session of this driver. */
  def put(k: TableKey, registrations: Map[String, String]): Entry = synchronized {
    val before = entries.get(k)
    val epoch =
      if (before != null && before.registrations == registrations) before.epoch
      else epochs.incrementAndGet
    val entry = Entry(registrations, epoch, System.currentTimeMillis)
    entries.put(k, entry)
    entry
  }

  /** What bore these names is gone: a table made anew starts with its own properties. */
  def forget(application: String, database: String, table: Option[String]): Unit = synchronized {
    entries.keySet.removeIf(k =>
      k.application == application && k.database == lower(database) &&
        table.forall(t => lower(t) == k.table))
  }

  private def readAgain(session: Compat.Session, table: CatalogTable, k: TableKey): Unit = {
    val mine = synchronized {
      val free = !reading(k)
      if (free) reading += k
      free
    }
    if (mine) reader.execute(() =>
      try {
        val before = synchronized(entries.get(k))
        val catalog = session.sharedState.externalCatalog
        val now = registrations(catalog.getTable(k.database, k.table))
        // A statement that finished during the read knows better than the read.
        synchronized(if (entries.get(k) eq before) put(k, now))
      } catch {
        case NonFatal(e) =>
          logDebug(s"sieve: could not read the indexes of ${k.database}.${k.table}: $e")
          synchronized(Option(entries.get(k)).foreach(e => put(k, e.registrations)))
      } finally synchronized(reading -= k))
  }
}
