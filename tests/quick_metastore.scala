package org.apache.spark.sql.sieve.tests

import java.util.HashMap

import org.apache.hadoop.hive.metastore.ObjectStore
import org.apache.hadoop.hive.metastore.api.{ColumnStatistics, Database, Table}

/**
 * An embedded metastore that remembers what it has read of databases and tables, since no other
 * process writes to it. Spark asks it four times a query, and each answer takes six queries of Derby.
 *
 * Whatever changes a table or database forgets everything, before it and after its transaction, in
 * which nothing is remembered.
 */
final class QuickMetastore extends ObjectStore {
  private var changing = false

  override def getTable(database: String, name: String): Table = {
    val found = read(s"$database\n$name", super.getTable(database, name))
    if (found == null) null else found.asInstanceOf[Table].deepCopy()
  }

  override def getDatabase(name: String): Database =
    read(name, super.getDatabase(name)).asInstanceOf[Database].deepCopy()

  override def createDatabase(made: Database): Unit = { change(); super.createDatabase(made) }
  override def alterDatabase(name: String, to: Database): Boolean = { change(); super.alterDatabase(name, to) }
  override def dropDatabase(name: String): Boolean = { change(); super.dropDatabase(name) }
  override def createTable(made: Table): Unit = { change(); super.createTable(made) }
  override def dropTable(database: String, name: String): Boolean = {
    change()
    super.dropTable(database, name)
  }
  override def alterTable(database: String, name: String, to: Table): Unit = {
    change()
    super.alterTable(database, name, to)
  }
  // Statistics of columns are noted among a table's properties.
  override def updateTableColumnStatistics(statistics: ColumnStatistics): Boolean = {
    change()
    super.updateTableColumnStatistics(statistics)
  }
  override def deleteTableColumnStatistics(database: String, table: String, column: String): Boolean = {
    change()
    super.deleteTableColumnStatistics(database, table, column)
  }

  override def commitTransaction(): Boolean = try super.commitTransaction() finally ended()
  override def rollbackTransaction(): Unit = try super.rollbackTransaction() finally ended()

  private def change(): Unit = { changing = true; QuickMetastore.forget() }

  private def ended(): Unit = if (changing && !isActiveTransaction) {
    QuickMetastore.forget()
    changing = false
  }

  private def read(name: String, load: => AnyRef): AnyRef =
    if (changing) load
    else {
      val before = QuickMetastore.changes
      val known = QuickMetastore.remembered(name)
      if (known != null) known
      else {
        val found = load
        QuickMetastore.remember(name, found, before)
        found
      }
    }
}

object QuickMetastore {
  private val known = new HashMap[String, AnyRef]
  private var count = 0L

  def changes: Long = synchronized(count)
  def remembered(name: String): AnyRef = synchronized(known.get(name))
  /** Notes what was read, unless anything has changed since the reading began. */
  def remember(name: String, found: AnyRef, before: Long): Unit =
    synchronized { if (count == before && found != null) known.put(name, found) }
  def forget(): Unit = synchronized { count += 1; known.clear() }
}
