package org.apache.spark.sql.sieve

import scala.util.Try
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog._
import org.apache.spark.sql.execution.CommandExecutionMode
import org.apache.spark.sql.execution.command._
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.sql.hive.execution.InsertIntoHiveTable

/**
 * Tells the front end what became of tables, so that their indexes follow. It has a queue of its
 * own: neither the user's statement nor any other listener waits for it.
 */
class Events(session: Compat.Session) extends SparkListener with Logging {
  private val application = session.sparkContext.applicationId

  override def onOtherEvent(event: SparkListenerEvent): Unit =
    try event match {
      case e: DropTableEvent => dropped(e.database, Some(e.name))
      case e: DropDatabaseEvent => dropped(e.database, None)
      case e: RenameTableEvent =>
        Registry.forget(application, e.database, Some(e.name))
        if (registered(e.database, e.newName)) {
          Link.tell(session, told("renamed", e.database, e.newName, "from" -> e.name))
        }
      case e: AlterTableEvent if e.kind != AlterTableStatsEvent =>
        if (registered(e.database, e.name)) Link.tell(session, told("altered", e.database, e.name))
      case e: SparkListenerSQLExecutionEnd if e.executionFailure.isEmpty => finished(e)
      case _ =>
    } catch { case NonFatal(e) => logWarning(s"sieve: indexes could not follow $event: $e") }

  private val AlterTableStatsEvent = "stats"

  override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = Frontend.end(application)

  /** Whatever indexes it had are nobody's now, if there is a place where they could lie. */
  private def dropped(database: String, table: Option[String]): Unit = {
    Registry.forget(application, database, table)
    val location = Try(Tables.databaseLocation(session, database)).getOrElse("")
    val roots = (if (location.isEmpty) Nil else Seq(s"$location/.sieve")) ++
      session.conf.getOption("spark.sieve.path")
    if (roots.exists(exists)) {
      Link.tell(session, told("dropped", database, table.getOrElse(""), "location" -> location))
    }
  }

  private def exists(root: String): Boolean = Try {
    val path = new Path(root)
    path.getFileSystem(session.sessionState.newHadoopConf()).exists(path)
  }.getOrElse(true)

  /** Whether a table has indexes, by the metastore, which the registry then knows too. */
  private def registered(database: String, table: String): Boolean =
    Registry.synchronizedWithMetastore {
      val now = session.sharedState.externalCatalog.getTable(database, table)
      Registry.put(Registry.key(session, now), Registry.registrations(now)).registrations.nonEmpty
    }

  /** A command that changed the files of a table, once: an outer execution ends with it again. */
  private def finished(end: SparkListenerSQLExecutionEnd): Unit =
    Option(end.qe).filter(_.mode == CommandExecutionMode.NON_ROOT).foreach { execution =>
      val writer = execution.sparkSession
      if (Settings.refreshAuto(writer)) {
        execution.analyzed.collectFirst(Events.written).flatten.foreach { case (table, anew) =>
          val database = table.database.getOrElse(writer.sessionState.catalog.getCurrentDatabase)
          if (registered(database, table.table) || anew) {
            Link.post(writer, told("written", database, table.table, "anew" -> anew.toString))
          }
        }
      }
    }

  private def told(what: String, database: String, table: String, more: (String, String)*)(
      body: ObjectNode): Unit = {
    body.put("event", what).put("database", database).put("table", table)
    more.foreach { case (k, v) => body.put(k, v) }
  }
}

object Events {
  private var listening = ""

  /** Once an application, with its first session. */
  def attach(session: Compat.Session): Unit = synchronized {
    val context = session.sparkContext
    if (listening != context.applicationId) {
      context.listenerBus.addToQueue(new Events(session), "sieve")
      listening = context.applicationId
    }
  }

  /** The table that a command wrote to, and whether it made it anew in the place of another. */
  private val written: PartialFunction[Any, Option[(TableIdentifier, Boolean)]] = {
    case c: InsertIntoHadoopFsRelationCommand => c.catalogTable.map(_.identifier -> false)
    case c: InsertIntoHiveTable => Some(c.table.identifier -> false)
    case c: CreateDataSourceTableAsSelectCommand =>
      Some(c.table.identifier -> (c.mode == SaveMode.Overwrite))
    case c: LoadDataCommand => Some(c.table -> false)
    case c: AlterTableAddPartitionCommand => Some(c.tableName -> false)
    case c: AlterTableDropPartitionCommand => Some(c.tableName -> false)
    case c: RepairTableCommand => Some(c.tableName -> false)
    case c: TruncateTableCommand => Some(c.tableName -> false)
  }
}
