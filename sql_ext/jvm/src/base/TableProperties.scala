package org.apache.spark.sql.sieve.base

/** The table properties that register a table's indexes. */
object TableProperties {
  /** The prefix of a property that registers an index. The prefix is followed by the name of the index. */
  val registrations = "sieve.index."
}
