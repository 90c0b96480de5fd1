package org.apache.spark.sql.sieve.base

/** The properties by which a table carries its indexes. */
object TableProperties {
  /** Each index that is registered: this and its name. */
  val registrations = "sieve.index."
}
