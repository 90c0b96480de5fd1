package org.apache.spark.sql.sieve.base

import com.fasterxml.jackson.databind.JsonNode
import scala.jdk.CollectionConverters._

/**
 * All reasons why a scan reads files that an index might have skipped, in the order of the counters. `build.py`
 * generates its values from `sieve/reader/reason.py`.
 */
object Reason extends Reasons {
  type Reason = Value

  /**
   * The reasons that mean that an index is broken. These reasons are logged, and with `spark.sieve.strict` they are
   * errors.
   */
  val failures: Set[Reason] = Set(IndexCorrupt, IndexGone, VersionTooNew, Error)

  /**
   * The reasons that `spark.sieve.require` accepts. With these reasons, no request was sent, a file is new since
   * the last REFRESH or nothing is proven about it, the scan cannot read parts of files, every file may have first
   * rows of an order, or a join has too many keys.
   */
  val expected: Set[Reason] = Set(
    NoIndex, NoPredicate, Disabled, Unbounded, NewFile, UnsettledFile, ChangedFile, UnprovenFile, WholeFile, KeysTooMany)

  /** The number of files for each reason in an answer of the front end. Fails for an unknown reason. */
  def counts(answer: JsonNode): Map[Reason, Long] = Option(answer).toSeq
    .flatMap(node => node.fieldNames.asScala.map(name => withName(name) -> node.get(name).asLong)).toMap

  def named[A](counts: Map[Reason, A]): Map[String, A] = counts.map { case (reason, n) => reason.toString -> n }
}
