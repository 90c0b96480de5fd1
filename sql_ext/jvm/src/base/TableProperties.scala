package org.apache.spark.sql.sieve.base

/** The table properties that register a table's indexes. */
object TableProperties {
  /**
   * The prefix of the name of a property that registers an index. After the prefix, the property's name contains the
   * name of the index.
   */
  val registrations = "sieve.index."
}
