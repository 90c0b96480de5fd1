package org.apache.spark.sql.sieve.ask

import org.apache.spark.sql.sieve.base.{Compat, LruMap}
import org.apache.spark.sql.sieve.catalog.{Registry, TableKey}
import org.apache.spark.sql.sieve.formats.Fingerprint

/** The fingerprints of a scan's readers: in its own session, and in the session that made its relation. */
object FingerprintCache {
  private type Key = (TableKey, Map[String, String])
  private val latest = new LruMap[Key, Seq[Fingerprint]](256)

  /** The current fingerprints, which `likely` returns from then on. */
  def update(index: IndexedScan): Seq[Fingerprint] = {
    val made = Seq(index.relation.sparkSession.asInstanceOf[Compat.Session], index.executing)
      .distinct.map(Fingerprint.of(index.relation, index.table, _)).distinct
    latest.synchronized(latest.put(key(index), made))
    made
  }

  /**
   * The fingerprints of the last scan of the table under the same settings, at little cost. The current ones
   * may differ: Hadoop has a thousand settings, and announces no change of them.
   */
  def likely(index: IndexedScan): Seq[Fingerprint] =
    Option(latest.synchronized(latest.get(key(index)))).getOrElse(update(index))

  private def key(index: IndexedScan): Key =
    (Registry.key(index.executing, index.table), index.executing.sessionState.conf.getAllConfs)
}
