package org.apache.spark.sql.sieve.base

import java.util.{LinkedHashMap, Map => JMap}

/**
 * A map of at most `capacity` entries. An insertion into a full map removes the least recently used entry. Not thread
 * safe.
 */
class LruMap[K, V](capacity: Long) extends LinkedHashMap[K, V](16, 0.75f, true) {
  override def removeEldestEntry(eldest: JMap.Entry[K, V]): Boolean = size > capacity
}
