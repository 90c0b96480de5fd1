package org.apache.spark.sql.sieve

import java.util.concurrent.{ConcurrentHashMap, Executors, RejectedExecutionException, TimeoutException, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try}
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException
import org.apache.spark.sql.catalyst.catalog._
import org.apache.spark.sql.execution.CommandExecutionMode
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/**
 * Tells the front end what became of tables, so that their indexes follow. The catalog's own events
 * come on the thread of whoever changed it, when a table to be dropped can still be read; the front
 * end is told on a thread of our own, which nobody waits for.
 */
class Events(first: Compat.Session) extends SparkListener with ExternalCatalogEventListener with Logging {
  private val application = first.sparkContext.applicationId
  private val worker = Executors.newSingleThreadExecutor { (r: Runnable) =>
    val thread = new Thread(r, "sieve-events"); thread.setDaemon(true); thread
  }
  /** Indexed tables about to be dropped, with the location of their database. */
  private val doomed = new ConcurrentHashMap[(String, String), (CatalogTable, String)]
  /** What was written to and waits for its refresh: the latest writer's request stands for all. */
  private val waiting = new ConcurrentHashMap[(String, String), () => Boolean]

  private def catalog: ExternalCatalog = first.sharedState.externalCatalog
  private def current: Compat.Session =
    SparkSession.getActiveSession.collect { case s: Compat.Session => s }.getOrElse(first)

  override def onEvent(event: ExternalCatalogEvent): Unit = event match {
    case e: DropTablePreEvent => doom(e.database, Seq(e.name))
    case e: DropDatabasePreEvent => doom(e.database, Try(catalog.listTables(e.database)).getOrElse(Nil))
    case e: DropTableEvent => dropped(e.database, Some(e.name))
    case e: DropDatabaseEvent => dropped(e.database, None)
    case e: RenameTableEvent =>
      Registry.forget(application, e.database, Some(e.name))
      changed(e.database, e.newName)
      val writer = current
      // What was written under the old name is not found there any more.
      if (Settings.refreshAuto(writer)) {
        later(s"renamed ${e.newName}")(
          written(writer, TableIdentifier(e.newName, Some(e.database)), anew = false))
      }
    case e: AlterTableEvent if e.kind != "stats" => changed(e.database, e.name)
    case _ =>
  }

  private def doom(database: String, tables: Seq[String]): Unit =
    catalog.getTablesByName(database, tables).filter(Registry.registrations(_).nonEmpty).foreach { t =>
      val location = Try(Tables.databaseLocation(first, database)).getOrElse("")
      doomed.put((database, t.identifier.table), (t, location))
    }

  private def dropped(database: String, table: Option[String]): Unit = {
    Registry.forget(application, database, table)
    doomed.keySet.asScala.toSeq
      .filter { case (d, t) => d == database && table.forall(_.equalsIgnoreCase(t)) }
      .foreach { key =>
        val (gone, location) = doomed.remove(key)
        tell("dropped", gone, "location" -> location)
      }
  }

  private def changed(database: String, table: String): Unit = {
    val now = read(database, table)
    if (Registry.registrations(now).nonEmpty) tell("changed", now)
  }

  /** A table as the metastore has it, which the registry then knows too. */
  private def read(database: String, table: String): CatalogTable =
    Registry.synchronizedWithMetastore {
      val now = catalog.getTable(database, table)
      Registry.put(Registry.key(first, now), Registry.registrations(now))
      now
    }

  private def tell(what: String, table: CatalogTable, more: (String, String)*): Unit = {
    val session = current
    later(s"$what ${table.identifier}")(Link.tell(session, body(what, table, more)))
  }

  private def body(what: String, table: CatalogTable, more: Seq[(String, String)])(
      node: ObjectNode): Unit = {
    node.put("event", what)
    node.set[ObjectNode]("table", Tables.identity(table))
    val registrations = node.putObject("registrations")
    Registry.registrations(table).foreach { case (k, v) => registrations.put(k, v) }
    more.foreach { case (k, v) => node.put(k, v) }
  }

  private def later(what: String)(work: => Unit): Unit =
    Try(worker.execute(() =>
      try work catch {
        case e: NoSuchTableException => logInfo(s"sieve: $what: renamed or dropped since: $e")
        case NonFatal(e) => logWarning(s"sieve: indexes could not follow: $what: $e")
      }))

  /** Waits, for a while, until what has happened so far is seen to. */
  private def settle(): Unit =
    try worker.submit((() => ()): Runnable).get(Events.patienceMillis, TimeUnit.MILLISECONDS)
    catch { case _: TimeoutException | _: RejectedExecutionException => }

  // -- the end of a command, on Spark's listener bus ---------------------------------------------

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: SparkListenerSQLExecutionEnd if e.executionFailure.isEmpty =>
      // An outer execution ends with the same command again.
      Option(e.qe).filter(_.mode == CommandExecutionMode.NON_ROOT).foreach { execution =>
        val writer = execution.sparkSession
        if (Settings.refreshAuto(writer)) {
          Written.by(execution.analyzed).foreach(what =>
            later(s"written ${what.table.fold(_.toString, _.toString)}")(
              Written.find(what, writer).foreach(written(writer, _, what.anew))))
        }
      }
    case _ =>
  }

  private def written(writer: Compat.Session, name: TableIdentifier, anew: Boolean): Unit = {
    val database = name.database.getOrElse(writer.sessionState.catalog.getCurrentDatabase)
    val table = read(database, name.table)
    if (Registry.registrations(table).nonEmpty || Declared.by(table).nonEmpty || anew) {
      val key = (database, table.identifier.table)
      val before = waiting.get(key)
      // One that waits since before this write sees what it wrote; an overwrite is to be told of.
      if (before == null || anew || before()) {
        val told = body("written", table, Seq("anew" -> anew.toString)) _
        waiting.put(key, Link.post(writer, told, { answer =>
          waiting.remove(key)
          val again = answer match {
            case Success(node) if node.path("again").asBoolean => Some(node.path("anew").asBoolean)
            // The child has gone before it came to it.
            case Failure(_: Undelivered) => Some(anew)
            case Failure(e) =>
              logWarning(s"sieve: the indexes of $name were not refreshed: $e")
              None
            case _ => None
          }
          again.foreach(how => later(s"written $name")(written(writer, name, how)))
        }))
      }
    }
  }

  override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = {
    worker.shutdown()
    // A driver that drops a table and ends takes the index along.
    worker.awaitTermination(20, TimeUnit.SECONDS)
    Frontend.end(application)
  }
}

object Events {
  @volatile private var listening: Option[(String, Events)] = None
  @volatile private var following = ""
  private val patienceMillis = 5000L

  /** A statement sees tables and indexes as the DDL before it left them. */
  def settled(session: Compat.Session): Unit =
    listening.filter(_._1 == session.sparkContext.applicationId).foreach(_._2.settle())

  /** Once an application, with its first session. */
  def attach(session: Compat.Session): Unit = synchronized {
    val context = session.sparkContext
    if (!listening.exists(_._1 == context.applicationId)) {
      val events = new Events(session)
      context.addSparkListener(events)
      listening = Some(context.applicationId -> events)
    }
  }

  /** Likewise to the catalog, once it is surely wanted: to make one takes seconds. */
  def follow(session: Compat.Session): Unit = {
    val application = session.sparkContext.applicationId
    if (following != application) synchronized {
      listening.filter(_._1 == application && following != application).foreach { case (_, events) =>
        // A catalog that cannot be had is told of by the statement itself.
        Try(session.sharedState.externalCatalog.addListener(events)).foreach(_ => following = application)
      }
    }
  }
}
