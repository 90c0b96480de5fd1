package org.apache.spark.sql.sieve.observe

import java.util.Locale
import java.util.concurrent.{ConcurrentHashMap, RejectedExecutionException, TimeoutException, TimeUnit}
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try}
import scala.util.control.NonFatal
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{NoSuchDatabaseException, NoSuchTableException}
import org.apache.spark.sql.catalyst.catalog._
import org.apache.spark.sql.execution.CommandExecutionMode
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.sql.sieve.ask.{FrontendClient, FrontendProcess, Undelivered}
import org.apache.spark.sql.sieve.base.{Compat, Settings}
import org.apache.spark.sql.sieve.catalog.{DeclaredIndexes, ReadingSession, Registry, TableIdentity, TableKey}
import org.apache.spark.sql.sieve.formats.TableFormat
import org.apache.spark.util.ThreadUtils

/**
 * Reports changes of tables to the front end, which then updates the tables' indexes. The catalog sends an event on the
 * thread that makes the change. The event for a dropped table comes before the table becomes unreadable. A separate
 * thread reports the events to the front end, so no caller waits for a report.
 */
class CatalogEvents(first: Compat.Session)
    extends SparkListener with ExternalCatalogEventListener with Logging {
  import CatalogEvents.{Pending, Write}

  private val application = first.sparkContext.applicationId
  private val worker = ThreadUtils.newDaemonSingleThreadExecutor("sieve-events")
  /** The indexed tables whose DROP has begun but not ended, each with the location of its database. */
  private val pendingDrops = new ConcurrentHashMap[(String, String), (CatalogTable, String)]
  /**
   * The written tables for which a refresh has been requested but has not ended. A refresh covers all writes that
   * precede its start.
   */
  private val pendingRefreshes = new ConcurrentHashMap[TableKey, Pending]

  /** The registered indexes of a table before the change that the current thread is making. */
  private val before = ThreadLocal.withInitial[Set[String]](() => Set.empty)

  private def catalog: ExternalCatalog = first.sharedState.externalCatalog
  private def current: Compat.Session =
    SparkSession.getActiveSession.collect { case s: Compat.Session => s }.getOrElse(first)

  override def onEvent(event: ExternalCatalogEvent): Unit = event match {
    case e: DropTablePreEvent => dropping(e.database, Seq(e.name))
    case e: DropDatabasePreEvent => dropping(e.database, Try(catalog.listTables(e.database)).getOrElse(Nil))
    case e: DropTableEvent => dropped(e.database, Some(e.name))
    case e: DropDatabaseEvent => dropped(e.database, None)
    case e: RenameTableEvent =>
      renamed(current, TableIdentifier(e.name, Some(e.database)), TableIdentifier(e.newName, Some(e.database)))
    case e: AlterTablePreEvent if e.kind != "stats" && TableFormat.replacesInPlace =>
      before.set(Registry.registrations(catalog.getTable(e.database, e.name)).keySet)
    case e: AlterTableEvent if e.kind != "stats" => changed(TableIdentifier(e.name, Some(e.database)))
    case _ =>
  }

  private def renamed(writer: Compat.Session, old: TableIdentifier, now: TableIdentifier): Unit = {
    Registry.invalidate(application, old.database.getOrElse("default"), Some(old.table))
    changed(now)
    // A refresh under the table's former name would no longer find the table, so this code requests a refresh under the
    // new name.
    later(s"renamed $now")(written(writer, now, Write(every = Settings.refreshAuto(writer))))
  }

  private def dropping(database: String, tables: Seq[String]): Unit =
    catalog.getTablesByName(database, tables).filter(Registry.registrations(_).nonEmpty).foreach { t =>
      val location = Try(TableIdentity.databaseLocation(first, database)).getOrElse("")
      pendingDrops.put((database, t.identifier.table), (t, location))
    }

  private def dropped(database: String, table: Option[String]): Unit = {
    Registry.invalidate(application, database, table)
    pendingDrops.keySet.asScala.toSeq
      .filter { case (d, t) => d == database && table.forall(_.equalsIgnoreCase(t)) }
      .foreach { key =>
        val (gone, location) = pendingDrops.remove(key)
        report("dropped", gone, "location" -> location)
      }
  }

  private def changed(name: TableIdentifier): Unit = {
    val now = Registry.reload(ReadingSession.of(first, name), name)
    val left = Registry.registrations(now).keySet
    // For some tables, CREATE OR REPLACE keeps the table's id but removes its properties, and with them its registered
    // indexes.
    if (TableFormat.isReplacedInPlace(now) && !before.get.subsetOf(left)) report("unregistered", now)
    if (left.nonEmpty) report("changed", now)
  }

  private def report(event: String, table: CatalogTable, more: (String, String)*): Unit = {
    val session = current
    later(s"$event ${table.identifier}")(FrontendClient.tell(session, fields(event, table, more: _*)))
  }

  private def fields(event: String, table: CatalogTable, more: (String, String)*): Map[String, Any] =
    Map("event" -> event, "table" -> TableIdentity.of(table),
      "registrations" -> Registry.registrations(table)) ++ more

  private def later(what: String)(work: => Unit): Unit = Try(worker.execute(() =>
    try work catch {
      case e @ (_: NoSuchTableException | _: NoSuchDatabaseException) =>
        logInfo(s"sieve: $what: renamed or dropped since: $e")
      case NonFatal(e) => logWarning(s"sieve: indexes were not updated after: $what: $e")
    }))

  /** Waits until all earlier events have been reported, but at most 5 seconds. */
  private def settle(): Unit =
    try worker.submit((() => ()): Runnable).get(5, TimeUnit.SECONDS)
    catch { case _: TimeoutException | _: RejectedExecutionException => }

  // -- events of Spark's listener bus: the end of a command ---------------------------------------

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: SparkListenerSQLExecutionEnd if e.executionFailure.isEmpty =>
      // Spark runs a command in an outer and an inner execution, and both end with the same plan. Only the inner
      // execution counts, so that a write is reported once. A batch of a stream has only one execution, so this
      // execution counts.
      for {
        execution <- Option(e.qe)
        if execution.mode == CommandExecutionMode.NON_ROOT || execution.analyzed.isStreaming
        writer = execution.sparkSession
      } {
        for (write <- WriteEvent.of(execution.analyzed)) {
          val every = Settings.refreshAuto(writer)
          later(s"written $write")(write.find(writer).foreach(written(writer, _, Write(write.replaced, every))))
        }
        for ((old, now) <- WriteEvent.renamed(execution.analyzed)) later(s"renamed $now")(renamed(writer, old, now))
      }
    case _ =>
  }

  private def written(writer: Compat.Session, name: TableIdentifier, write: Write): Unit = {
    val database = name.database.getOrElse(writer.sessionState.catalog.getCurrentDatabase)
    val table = Registry.reload(ReadingSession.of(writer, name), name.copy(database = Some(database)))
    val key = Registry.key(writer, table)
    val before = Option(pendingRefreshes.get(key))
    // A requested refresh that has not begun will cover this write, too, so this write needs no further refresh. The
    // replacement of a table must always be reported.
    if (followed(table, write) && !before.exists(p => !write.replaced && p.covers(write) && !p.begun())) {
      val event = fields("written", table,
        "replaced" -> write.replaced.toString, "every" -> write.every.toString)
      val begun = FrontendClient.post(writer, event, { answer =>
        pendingRefreshes.remove(key)
        val again = answer match {
          case Success(node) if node.path("again").asBoolean =>
            Some(Write(node.path("replaced").asBoolean, node.path("every").asBoolean))
          // The front end ended before it began this refresh, so another front end must run the refresh.
          case Failure(_: Undelivered) => Some(write)
          case Failure(e) =>
            logWarning(s"sieve: the indexes of $name were not refreshed: $e")
            None
          case _ => None
        }
        again.foreach(how => later(s"written $name")(written(writer, name, how)))
      })
      pendingRefreshes.put(key, Pending(begun, write.every))
    }
  }

  /**
   * True if a write must be reported to the front end: if the session or an index requests automatic refreshes, or if
   * the write has replaced a table.
   */
  private def followed(table: CatalogTable, write: Write): Boolean = {
    val (has, declared) = (Registry.registrations(table), DeclaredIndexes.by(table))
    if (write.every) has.nonEmpty || declared.nonEmpty || write.replaced
    else has.values.exists(Registry.follows) || declared.values.exists(mayFollow) ||
      // Only the front end knows the indexes of the replaced table, so the replacement of a table must be reported.
      write.replaced && FrontendProcess.running.isDefined
  }

  /**
   * True if the text of an index's options contains the word `refresh`. Only the front end can parse options. Without
   * this test, the front end would have to start and parse the options after each write.
   */
  private def mayFollow(options: String): Boolean = options.toLowerCase(Locale.ROOT).contains("refresh")

  override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = {
    worker.shutdown()
    // The driver must not end before the front end has deleted the indexes of dropped tables, so this code waits for
    // the reports.
    worker.awaitTermination(20, TimeUnit.SECONDS)
    ScanRecord.save(first)
    FrontendProcess.end(application)
  }
}

object CatalogEvents {
  /**
   * A request for refreshes after a write. `replaced` is true if the written table has replaced another table. `every`
   * is true if every index must be refreshed, not only the indexes with automatic refreshes.
   */
  private final case class Write(replaced: Boolean = false, every: Boolean)

  /**
   * A requested refresh. `begun` returns true once the front end has begun the refresh. `every` is true if the refresh
   * covers every index.
   */
  private final case class Pending(begun: () => Boolean, every: Boolean) {
    def covers(write: Write): Boolean = every || !write.every
  }

  @volatile private var listening: Option[(String, CatalogEvents)] = None
  @volatile private var following = ""

  private def own(session: Compat.Session): Option[CatalogEvents] =
    listening.filter(_._1 == session.sparkContext.applicationId).map(_._2)

  /** Waits for pending events, so that a statement sees the effects of all earlier DDL statements. */
  def settled(session: Compat.Session): Unit = own(session).foreach(_.settle())

  /** Registers listeners on Spark's listener bus, once for each application. */
  def attach(session: Compat.Session): Unit = synchronized {
    if (own(session).isEmpty) {
      val events = new CatalogEvents(session)
      session.sparkContext.addSparkListener(events)
      session.sparkContext.addSparkListener(ScanRecord)
      listening = Some(session.sparkContext.applicationId -> events)
    }
  }

  /**
   * Registers the listener of the catalog's events. Creating a catalog takes seconds, so callers use this method only
   * when they need the catalog anyway.
   */
  def follow(session: Compat.Session): Unit = {
    val application = session.sparkContext.applicationId
    if (following != application) synchronized {
      // If the catalog cannot be created, the statement that needs the catalog reports the error.
      for (events <- own(session) if following != application)
        Try(session.sharedState.externalCatalog.addListener(events)).foreach(_ => following = application)
    }
  }
}
