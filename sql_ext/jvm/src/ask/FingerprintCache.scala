package org.apache.spark.sql.sieve.ask

import org.apache.spark.sql.sieve.base.{Compat, LruMap}
import org.apache.spark.sql.sieve.catalog.{Registry, TableKey}
import org.apache.spark.sql.sieve.formats.Fingerprint

/** The fingerprints of a scan's readers: of its own session's, and of the one that made its relation. */
object FingerprintCache {
  private type Key = (TableKey, Map[String, String])
  private val latest = new LruMap[Key, Seq[Fingerprint]](256)

  /** The fingerprints as they are now, which `likely` returns from then on. */
  def update(index: IndexedScan): Seq[Fingerprint] = {
    val made = Seq(index.relation.sparkSession.asInstanceOf[Compat.Session], index.executing)
      .distinct.map(Fingerprint.of(index.relation, index.table, _)).distinct
    latest.synchronized(latest.put(key(index), made))
    made
  }

  /**
   * Those of the last scan of the table under the same settings, at little cost. They may differ now:
   * Hadoop's settings, of which there are a thousand, announce no change.
   */
  def likely(index: IndexedScan): Seq[Fingerprint] =
    Option(latest.synchronized(latest.get(key(index)))).getOrElse(update(index))

  private def key(index: IndexedScan): Key =
    (Registry.key(index.executing, index.table), index.executing.sessionState.conf.getAllConfs)
}
