package org.apache.spark.sql.sieve.base

import com.fasterxml.jackson.databind.JsonNode
import scala.jdk.CollectionConverters._

/**
 * The reasons why a scan reads files that an index might have skipped. Counters list the reasons in this order.
 * `build.py` generates the reasons from `sieve/reader/reason.py`.
 */
object Reason extends Reasons {
  type Reason = Value

  /**
   * The reasons that mean that an index is broken. Sieve logs such a failure. With `spark.sieve.strict`, the failure
   * makes the query fail.
   */
  val failures: Set[Reason] = Set(IndexCorrupt, IndexGone, VersionTooNew, Error)

  /**
   * The reasons that `spark.sieve.require` accepts. Their causes: no request was sent to the front end; a file is new
   * or changed since the last REFRESH; nothing is proven about a file; a scan cannot read parts of files; the first
   * rows of an order can be in any file; or a join has too many keys.
   */
  val expected: Set[Reason] = Set(
    NoIndex, NoPredicate, Disabled, Unbounded, NewFile, UnsettledFile, ChangedFile, UnprovenFile, WholeFile, KeysTooMany)

  /** The number of files for each reason in an answer of the front end. Fails for an unknown reason. */
  def counts(answer: JsonNode): Map[Reason, Long] = Option(answer).toSeq
    .flatMap(node => node.fieldNames.asScala.map(name => withName(name) -> node.get(name).asLong)).toMap

  def named[A](counts: Map[Reason, A]): Map[String, A] = counts.map { case (reason, n) => reason.toString -> n }
}
