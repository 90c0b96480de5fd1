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
   * The reasons that mean that an index is broken. Failures with these reasons are logged, and are errors with
   * `spark.sieve.strict`.
   */
  val failures: Set[Reason] = Set(IndexCorrupt, IndexGone, VersionTooNew, Error)

  /**
   * The reasons that `spark.sieve.require` accepts. Such a reason means that no request was sent, that a file is
   * new since the last REFRESH, or that nothing is proven about a file. Other accepted reasons are a scan that
   * cannot read parts of files, an order whose first rows can be in any file, and a join with too many keys.
   */
  val expected: Set[Reason] = Set(
    NoIndex, NoPredicate, Disabled, Unbounded, NewFile, UnsettledFile, ChangedFile, UnprovenFile, WholeFile, KeysTooMany)

  /** The number of files for each reason in an answer of the front end. Fails for an unknown reason. */
  def counts(answer: JsonNode): Map[Reason, Long] = Option(answer).toSeq
    .flatMap(node => node.fieldNames.asScala.map(name => withName(name) -> node.get(name).asLong)).toMap

  def named[A](counts: Map[Reason, A]): Map[String, A] = counts.map { case (reason, n) => reason.toString -> n }
}
