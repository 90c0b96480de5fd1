package org.apache.spark.sql.sieve.base

import com.fasterxml.jackson.databind.JsonNode
import scala.jdk.CollectionConverters._

/**
 * The reasons why a scan read files that an index might have skipped. The list is complete, in the order of the
 * counters. `build.py` generates its values from `sieve/reader/reason.py`.
 */
object Reason extends Reasons {
  type Reason = Value

  /**
   * The reasons that mean that an index is broken. They are logged, and under `spark.sieve.strict` they are
   * errors.
   */
  val failures: Set[Reason] = Set(IndexCorrupt, IndexGone, VersionTooNew, Error)

  /**
   * Reasons that `spark.sieve.require` accepts: no request was sent, a file is new since the last
   * REFRESH or unproven, the scan cannot read parts of files, the first rows in an order may lie
   * anywhere, or a join has many keys.
   */
  val expected: Set[Reason] = Set(
    NoIndex, NoPredicate, Disabled, Unbounded, NewFile, UnsettledFile, ChangedFile, UnprovenFile, WholeFile, KeysTooMany)

  /** The counts by reason in an answer of the front end; fails for an unknown reason. */
  def counts(answer: JsonNode): Map[Reason, Long] = Option(answer).toSeq
    .flatMap(node => node.fieldNames.asScala.map(name => withName(name) -> node.get(name).asLong)).toMap

  def named[A](counts: Map[Reason, A]): Map[String, A] = counts.map { case (reason, n) => reason.toString -> n }
}
