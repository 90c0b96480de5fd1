package org.apache.spark.sql.sieve.ask

import org.apache.spark.sql.sieve.base.{Compat, LruMap}
import org.apache.spark.sql.sieve.catalog.{Registry, TableKey}
import org.apache.spark.sql.sieve.formats.Fingerprint

/**
 * Caches the reader fingerprints of scans. A scan has one fingerprint for the session that runs the scan, and one for
 * the session that created the scan's relation.
 */
object FingerprintCache {
  private type Key = (TableKey, Map[String, String], Map[String, String])
  private val latest = new LruMap[Key, Seq[Fingerprint]](256)

  /** Computes the current fingerprints of a scan, and caches them for `likely`. */
  def update(index: IndexedScan): Seq[Fingerprint] = {
    val made = Seq(index.relation.sparkSession.asInstanceOf[Compat.Session], index.executing)
      .distinct.map(Fingerprint.of(index.relation, index.table, _).and(index.expressions.parts)).distinct
    latest.synchronized(latest.put(key(index), made))
    made
  }

  /**
   * Returns the fingerprints that an earlier scan of the table cached under the same settings of the session. The
   * current fingerprints can differ from the cached ones, because Hadoop does not announce changes of its own settings.
   */
  def likely(index: IndexedScan): Seq[Fingerprint] =
    Option(latest.synchronized(latest.get(key(index)))).getOrElse(update(index))

  private def key(index: IndexedScan): Key =
    (Registry.key(index.executing, index.table), index.executing.sessionState.conf.getAllConfs, index.expressions.parts)
}
