package org.apache.spark.sql.sieve.base

/** The table properties that register a table's indexes. */
object TableProperties {
  /** The prefix of the property that registers an index; the index's name follows. */
  val registrations = "sieve.index."
}
