package org.apache.spark.sql.sieve

import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.catalyst.catalog._

/**
 * Lets the registry forget tables that are gone, and tells the front end what happened, while it
 * runs; nothing here may slow the bus.
 */
class CatalogListener(session: Compat.Session) extends SparkListener {
  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: RenameTableEvent =>
      forget(e.database, Some(e.name))
      tell("rename", e.database, e.name, e.newName)
    case e: DropTableEvent =>
      forget(e.database, Some(e.name))
      tell("drop", e.database, e.name)
    case e: DropDatabaseEvent =>
      forget(e.database, None)
      tell("drop database", e.database, "")
    case e: AlterTableEvent => tell(s"alter ${e.kind}", e.database, e.name)
    case e: CreateTableEvent => tell("create", e.database, e.name)
    case _ =>
  }

  override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit =
    Frontend.end(session.sparkContext.applicationId)

  private def forget(database: String, table: Option[String]): Unit =
    Registry.forget(session.sparkContext.applicationId, database, table)

  private def tell(what: String, database: String, table: String, to: String = ""): Unit =
    Link.event(session, _.put("event", what).put("database", database).put("name", table).put("to", to))
}
