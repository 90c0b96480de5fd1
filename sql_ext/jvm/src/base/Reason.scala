package org.apache.spark.sql.sieve.base

import com.fasterxml.jackson.databind.JsonNode
import scala.jdk.CollectionConverters._

/**
 * Why a scan read files that an index might have skipped: the closed list, in the order of its
 * counters. `build.py` generates its values from `sieve/reader/reason.py`.
 */
object Reason extends Reasons {
  type Reason = Value

  /**
   * Reasons that mean that an index is broken: they are logged, and an error under
   * `spark.sieve.strict`.
   */
  val failures: Set[Reason] = Set(IndexCorrupt, IndexGone, VersionTooNew, Error)

  /**
   * Reasons that `spark.sieve.require` accepts: no request was sent, a file is new since the last
   * REFRESH, the scan cannot read parts of files, the first rows in an order may lie anywhere, or a
   * join has many keys.
   */
  val expected: Set[Reason] = Set(
    NoIndex, NoPredicate, Disabled, Unbounded, NewFile, UnsettledFile, ChangedFile, WholeFile, KeysTooMany)

  /** The counts by reason in an answer of the front end; fails for an unknown reason. */
  def counts(answer: JsonNode): Map[Reason, Long] = Option(answer).toSeq
    .flatMap(node => node.fieldNames.asScala.map(name => withName(name) -> node.get(name).asLong)).toMap

  def named[A](counts: Map[Reason, A]): Map[String, A] = counts.map { case (reason, n) => reason.toString -> n }
}
