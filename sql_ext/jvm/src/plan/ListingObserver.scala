package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.sieve.ask.{FirstRows, Pruned}

/**
 * A listing as an index has pruned it.
 *
 * @param filters what the index was asked
 * @param bound   the first rows that are wanted; a file skipped for its place in an order may well hold
 *                rows that satisfy the filters
 * @param millis  how long pruning took
 */
final case class Listing(filters: Seq[Expression], bound: Option[FirstRows], pruned: Pruned, millis: Long)

/** Sees listings of indexed tables. An exception fails the query. */
trait ListingObserver {
  def listed(index: SieveFileIndex, listing: Listing): Unit
}
