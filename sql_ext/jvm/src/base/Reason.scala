package org.apache.spark.sql.sieve.base

import com.fasterxml.jackson.databind.JsonNode
import scala.jdk.CollectionConverters._

/**
 * The reasons why a scan reads files that an index might have skipped. Counters list the reasons in the order of their
 * definition. `build.py` generates the definitions from `sieve/reader/reason.py`.
 */
object Reason extends Reasons {
  type Reason = Value

  /**
   * The reasons that count as failures, for example a corrupt index. Sieve logs each failure. With
   * `spark.sieve.strict`, a failure makes the query fail.
   */
  val failures: Set[Reason] = Set(IndexCorrupt, IndexGone, VersionTooNew, Error)

  /**
   * The reasons that do not make a query fail under `spark.sieve.require`. For example, the scan sent no request to the
   * front end, or a file has changed since the last REFRESH.
   */
  val expected: Set[Reason] = Set(
    NoIndex, NoPredicate, Disabled, Unbounded, NewFile, UnsettledFile, ChangedFile, UnprovenFile, WholeFile, KeysTooMany)

  /**
   * The number of files for each reason in an answer of the front end. Throws an exception if the answer contains an
   * unknown reason.
   */
  def counts(answer: JsonNode): Map[Reason, Long] = Option(answer).toSeq
    .flatMap(node => node.fieldNames.asScala.map(name => withName(name) -> node.get(name).asLong)).toMap

  def named[A](counts: Map[Reason, A]): Map[String, A] = counts.map { case (reason, n) => reason.toString -> n }
}
