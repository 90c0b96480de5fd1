package org.apache.spark.sql.sieve

import java.util.{LinkedHashMap => LruMap, Map => JMap}

/** The marks of the readers that a scan has: of its own session's, and of that which made its relation. */
object Marks {
  private type Settings = Map[String, String]
  private val capacity = 256
  private val latest = new LruMap[(TableKey, Settings), Seq[String]](16, 0.75f, true) {
    override def removeEldestEntry(e: JMap.Entry[(TableKey, Settings), Seq[String]]): Boolean =
      size > capacity
  }

  def of(index: SieveFileIndex): Seq[String] = {
    val marks = Seq(index.relation.sparkSession.asInstanceOf[Compat.Session], index.executing)
      .distinct.map(s => Fingerprint.of(index.relation, index.table, s).hash).distinct
    latest.synchronized(latest.put(key(index), marks))
    marks
  }

  /**
   * What a scan of the table under these settings had last, at little cost. It may be otherwise now:
   * Hadoop's settings, which are a thousand, tell nobody when they change.
   */
  def likely(index: SieveFileIndex): Seq[String] =
    Option(latest.synchronized(latest.get(key(index)))).getOrElse(of(index))

  private def key(index: SieveFileIndex): (TableKey, Settings) =
    (Registry.key(index.executing, index.table), index.executing.sessionState.conf.getAllConfs)
}
