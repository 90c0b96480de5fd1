package org.apache.spark.sql.sieve.catalog

import java.util.Locale
import java.util.concurrent.atomic.AtomicLong
import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.sieve.base.{Compat, Json, LruMap, Settings, TableProperties}
import org.apache.spark.sql.sieve.formats.SourceTable
import org.apache.spark.util.ThreadUtils

/**
 * The full name of a table, with its application and catalog. Names in the session catalog are stored in lower case,
 * because this catalog is not case-sensitive. Two sessions can define different catalogs of the same name. So for a
 * table of any other catalog, the key also contains the table's location.
 */
final case class TableKey(application: String, catalog: String, database: String, table: String, location: String)

/**
 * The indexes of a table. `registrations` maps property names to registrations. `epoch` increases when the
 * registrations change. `readAt` is the time in ms at which Sieve stored this entry.
 */
final case class Entry(registrations: Map[String, String], epoch: Long, readAt: Long) {
  /**
   * The paths of the indexed columns. A path is a list of names, because an indexed column can be a field of a struct.
   */
  lazy val columns: Set[Seq[String]] = registrations.values.toSet.flatMap { (text: String) =>
    Try(Json.read(text).get("column").elements.asScala.map(_.asText).toList).toOption
  }
}

/**
 * The registry of all tables with indexes, which all sessions of the driver share. An open session caches a table's
 * properties. So, without the registry, an open session would not see an index that is created later. The registry also
 * has entries for tables without an index, because a scan of an unindexed table then costs only one look-up. When an
 * entry has expired, a background thread reads the table's properties again.
 */
object Registry extends Logging {
  private val epochs = new AtomicLong
  private val entries = new LruMap[TableKey, Entry](10000)
  private val reader = ThreadUtils.newDaemonSingleThreadExecutor("sieve-registry")
  private var reading = Set.empty[TableKey]
  private val reloads = new Object

  private def lower(s: String): String = s.toLowerCase(Locale.ROOT)

  def key(session: Compat.Session, table: CatalogTable): TableKey = {
    val name = table.identifier
    val (holder, database) = (name.catalog.getOrElse(TableIdentity.sessionCatalog), name.database.getOrElse("default"))
    val application = session.sparkContext.applicationId
    // Catalogs other than the session catalog can distinguish names by case.
    if (lower(holder) == TableIdentity.sessionCatalog)
      TableKey(application, TableIdentity.sessionCatalog, lower(database), lower(name.table), "")
    else TableKey(application, holder, database, name.table, table.storage.locationUri.fold("")(_.toString))
  }

  def registrations(table: CatalogTable): Map[String, String] =
    table.properties.filter(_._1.startsWith(TableProperties.registrations)).toMap

  /**
   * True if the registration requests automatic refreshes. Sieve then refreshes the index after each write to the
   * table, whatever the session's setting is.
   */
  def follows(registration: String): Boolean =
    Try(Json.read(registration).path("refresh").asText == "auto").getOrElse(false)

  /** The table's entry. Returns None if the table has no index. This method never waits for the metastore. */
  def find(session: Compat.Session, table: CatalogTable): Option[Entry] = {
    val k = key(session, table)
    val entry = synchronized(Option(entries.get(k)).getOrElse(put(k, registrations(table))))
    if (System.currentTimeMillis - entry.readAt > Settings.registryMillis(session)) refresh(session, k)
    if (entry.registrations.isEmpty) None else Some(entry)
  }

  /** All indexed tables of an application that the registry contains, with their registrations. */
  def indexed(application: String): Seq[(TableKey, Map[String, String])] = synchronized {
    entries.asScala.toSeq.collect {
      case (key, entry) if key.application == application && entry.registrations.nonEmpty =>
        key -> entry.registrations
    }
  }

  /** Reads a table from the metastore, and makes the table's indexes known to every session of this driver. */
  def reload(session: Compat.Session, name: TableIdentifier): CatalogTable = reloads.synchronized {
    // Only one thread at a time reads a table and stores the entry, so no older read overwrites the result of a newer
    // read.
    val now = CatalogTables.read(session, name)
    put(key(session, now), registrations(now))
    now
  }

  def put(k: TableKey, registrations: Map[String, String]): Entry = synchronized {
    val before = entries.get(k)
    val epoch =
      if (before != null && before.registrations == registrations) before.epoch
      else epochs.incrementAndGet
    val entry = Entry(registrations, epoch, System.currentTimeMillis)
    entries.put(k, entry)
    entry
  }

  /**
   * Removes the entry of a table. If `table` is None, removes the entries of all tables in the database. Without this
   * removal, a new table of the same name would seem to have the old table's indexes.
   */
  def invalidate(application: String, database: String, table: Option[String]): Unit = synchronized {
    entries.keySet.removeIf(k =>
      k.application == application && lower(k.database) == lower(database) &&
        table.forall(t => lower(t) == lower(k.table)))
  }

  private def refresh(session: Compat.Session, k: TableKey): Unit = {
    val mine = synchronized {
      val free = !reading(k)
      if (free) reading += k
      free
    }
    if (mine) reader.execute(() =>
      try {
        val before = synchronized(entries.get(k))
        val name = TableIdentifier(k.table, Some(k.database), Some(k.catalog))
        val now = registrations(SourceTable.find(ReadingSession.of(session, name), name).fold(
          session.sharedState.externalCatalog.getTable(k.database, k.table))(_.description))
        // If a statement has stored a newer entry during this read, this code keeps the newer entry.
        synchronized(if (entries.get(k) eq before) put(k, now))
      } catch {
        case NonFatal(e) =>
          logDebug(s"sieve: could not read the indexes of ${k.database}.${k.table}: $e")
          synchronized(Option(entries.get(k)).foreach(e => put(k, e.registrations)))
      } finally synchronized(reading -= k))
  }
}
