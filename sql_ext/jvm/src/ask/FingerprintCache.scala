package org.apache.spark.sql.sieve.ask

import org.apache.spark.sql.sieve.base.{Compat, LruMap}
import org.apache.spark.sql.sieve.catalog.{Registry, TableKey}
import org.apache.spark.sql.sieve.formats.Fingerprint

/**
 * The fingerprints of a scan's readers. One fingerprint is for the session that runs the scan, the other is for the
 * session that created its relation.
 */
object FingerprintCache {
  private type Key = (TableKey, Map[String, String], Map[String, String])
  private val latest = new LruMap[Key, Seq[Fingerprint]](256)

  /** Computes the current fingerprints. Afterwards `likely` returns them. */
  def update(index: IndexedScan): Seq[Fingerprint] = {
    val made = Seq(index.relation.sparkSession.asInstanceOf[Compat.Session], index.executing)
      .distinct.map(Fingerprint.of(index.relation, index.table, _).and(index.expressions.parts)).distinct
    latest.synchronized(latest.put(key(index), made))
    made
  }

  /**
   * Returns the fingerprints of the last scan of the table under the same settings, without computing them again. The
   * current fingerprints are possibly different, because Hadoop does not announce a change of its settings.
   */
  def likely(index: IndexedScan): Seq[Fingerprint] =
    Option(latest.synchronized(latest.get(key(index)))).getOrElse(update(index))

  private def key(index: IndexedScan): Key =
    (Registry.key(index.executing, index.table), index.executing.sessionState.conf.getAllConfs, index.expressions.parts)
}
