package org.apache.spark.sql.sieve.base

/** The table properties that register a table's indexes. */
object TableProperties {
  /**
   * The prefix of the property that registers an index. The rest of the property's name is the name of the index.
   */
  val registrations = "sieve.index."
}
