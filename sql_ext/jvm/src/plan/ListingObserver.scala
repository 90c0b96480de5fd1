package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.sieve.ask.Pruned
import org.apache.spark.sql.sieve.predicate.TopK

/**
 * A listing that Sieve has pruned.
 *
 * @param filters the filters that the index evaluated
 * @param bound   the top-k condition, if the query needs only the first rows; a file without these rows is skipped,
 *                even if its rows satisfy the filters
 * @param millis  the time in milliseconds that pruning took
 */
final case class Listing(filters: Seq[Expression], bound: Option[TopK], pruned: Pruned, millis: Long)

/**
 * Spark's scans call this observer for each listing of an indexed table. If the observer throws an exception, the query
 * fails.
 */
trait ListingObserver {
  def listed(index: SieveFileIndex, listing: Listing): Unit
}
