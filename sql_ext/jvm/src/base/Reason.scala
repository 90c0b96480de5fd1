package org.apache.spark.sql.sieve.base

import com.fasterxml.jackson.databind.JsonNode
import scala.jdk.CollectionConverters._

/**
 * Why a scan read files that an index might have skipped: the closed list, in the order of its
 * counters.
 */
object Reason extends Enumeration {
  type Reason = Value
  val NoIndex = Value("no-index")
  val RootRefused = Value("root-refused")
  val Disabled = Value("disabled")
  val NoPredicate = Value("no-predicate")
  val UnsupportedPredicate = Value("unsupported-predicate")
  val Unbounded = Value("unbounded")
  val NewFile = Value("new-file")
  val ChangedFile = Value("changed-file")
  val UnsettledFile = Value("unsettled-file")
  val ReaderChanged = Value("reader-changed")
  val IndexGone = Value("index-gone")
  val IndexCorrupt = Value("index-corrupt")
  val VersionTooNew = Value("version-too-new")
  val VersionTooOld = Value("version-too-old")
  val WholeFile = Value("whole-file")
  val KeysTooMany = Value("keys-too-many")
  val KeysFailed = Value("keys-failed")
  val JoinNotSelective = Value("join-not-selective")
  val JoinTooCostly = Value("join-too-costly")
  val JoinNotRepeatable = Value("join-not-repeatable")
  val ExchangeShared = Value("exchange-shared")
  val Idle = Value("idle")
  val Timeout = Value("timeout")
  val FrontEndDown = Value("front-end-down")
  val Error = Value("error")

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
