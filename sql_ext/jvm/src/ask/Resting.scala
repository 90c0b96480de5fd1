package org.apache.spark.sql.sieve.ask

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, GetStructField, Literal}
import org.apache.spark.sql.execution.datasources.PartitionDirectory
import org.apache.spark.sql.sieve.base.{LruMap, Policy, Reason, Settings}

/**
 * Stop-loss: scans skip their request after similar scans skipped no file. An answer says how many of
 * the next similar scans need no request; this object counts them. Scans are similar if they have the
 * same table, indexes and form of filters, whatever the constants.
 */
object Resting {
  /**
   * Similar scans: the useless requests since the last scan that skipped a file, and the scans that
   * still need no request.
   */
  private final class Rest { var vain, left = 0; var used: Seq[String] = Nil }
  private type Form = (TableIdentifier, Map[String, String], Int)

  private val rests = new LruMap[Form, Rest](Policy.limit("resting_forms"))

  /** The number of successive useless requests of similar scans. */
  def vain(index: IndexedScan, filters: Seq[Expression]): Int =
    synchronized(Option(rests.get(form(index, filters))).fold(0)(_.vain))

  /** Whether a scan that is planned now will send no request. */
  def rests(index: IndexedScan, filters: Seq[Expression]): Boolean =
    !mustAsk(index) && synchronized(Option(rests.get(form(index, filters))).exists(_.left > 0))

  /** The result for a listing that sends no request; None if the listing must send a request. */
  def taken(index: IndexedScan, listed: Seq[PartitionDirectory], filters: Seq[Expression]): Option[Pruned] =
    if (mustAsk(index)) None
    else synchronized(Option(rests.get(form(index, filters))).filter(_.left > 0).map { rest =>
      rest.left -= 1
      Pruned.nothing(listed, Reason.Idle).copy(used = rest.used)
    })

  /**
   * Records the result of a request. A listing of one file, and an answer without a count, teach
   * nothing.
   */
  def note(
      index: IndexedScan, listed: Seq[PartitionDirectory], filters: Seq[Expression], pruned: Pruned): Unit =
    pruned.rest.filter(_ => Pruned.files(listed) > 1).foreach { scans =>
      val key = form(index, filters)
      synchronized {
        if (pruned.skipped.nonEmpty) rests.remove(key)
        else {
          val rest = rests.computeIfAbsent(key, _ => new Rest)
          rest.vain += 1
          rest.left = scans
          rest.used = pruned.used
        }
      }
    }

  /** Makes all scans send requests again after an index has changed. */
  def wake(): Unit = synchronized(rests.clear())

  private def mustAsk(index: IndexedScan): Boolean = {
    val session = index.executing
    Settings.strict(session) || Settings.required(session) || Settings.auditSample(session) > 0
  }

  private def form(index: IndexedScan, filters: Seq[Expression]): Form = {
    val words = filters.flatMap(_.collect {
      case a: Attribute => a.name
      case _: Literal => "?"
      case field: GetStructField => field.ordinal.toString
      // The text includes the number of rows, since a bound may exist for fewer rows only.
      case first: FirstRows => first.sql
      case e => e.prettyName
    })
    (index.table.identifier, index.entry.registrations, words.hashCode)
  }
}
