package org.apache.spark.sql.sieve.ask

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, GetStructField, Literal}
import org.apache.spark.sql.execution.datasources.PartitionDirectory
import org.apache.spark.sql.sieve.base.{LruMap, Policy, Reason, Settings}

/**
 * Stop-loss: scans that do not ask, since scans alike skipped nothing. An answer says how many of the
 * next ones need not ask; here they are counted. Scans are alike if table, indexes and the form of
 * their filters are the same, whatever the constants.
 */
object Resting {
  /** Scans alike: how many asked in vain since the last that skipped something, and how many may rest now. */
  private final class Rest { var vain, left = 0; var used: Seq[String] = Nil }
  private type Form = (TableIdentifier, Map[String, String], Int)

  private val rests = new LruMap[Form, Rest](Policy.limit("resting_forms"))

  /** How many scans alike, in a row, have asked in vain. */
  def vain(index: IndexedScan, filters: Seq[Expression]): Int =
    synchronized(Option(rests.get(form(index, filters))).fold(0)(_.vain))

  /** Whether a scan that is planned now will not ask. */
  def rests(index: IndexedScan, filters: Seq[Expression]): Boolean =
    !mustAsk(index) && synchronized(Option(rests.get(form(index, filters))).exists(_.left > 0))

  /** What becomes of a listing that does not ask; None for one that has to. */
  def taken(index: IndexedScan, listed: Seq[PartitionDirectory], filters: Seq[Expression]): Option[Pruned] =
    if (mustAsk(index)) None
    else synchronized(Option(rests.get(form(index, filters))).filter(_.left > 0).map { rest =>
      rest.left -= 1
      Pruned.nothing(listed, Reason.Idle).copy(used = rest.used)
    })

  /** Notes what came of asking; nothing is learnt where nothing was answered, or there was nothing to skip. */
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

  /** An index has changed: all scans ask again. */
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
      // With its rows, of which fewer may have a bound.
      case first: FirstRows => first.sql
      case e => e.prettyName
    })
    (index.table.identifier, index.entry.registrations, words.hashCode)
  }
}
