package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.sieve.ask.Pruned
import org.apache.spark.sql.sieve.base.{Reason, Settings, SieveException}

/**
 * Implements `spark.sieve.require`. Under `spark.sieve.require`, a query fails if an index could evaluate the query's
 * filter but was not used.
 */
object RequireCheck {
  def apply(index: SieveFileIndex, pruned: Pruned): Unit = if (Settings.required(index.executing)) {
    // An unsupported predicate does not make the query fail if an index has evaluated another part of the filter.
    val ofParts = if (pruned.narrows) Some(Reason.UnsupportedPredicate) else None
    val reasons = (pruned.reasons.keySet -- Reason.expected -- ofParts).toSeq.sorted.map {
      case Reason.UnsupportedPredicate if pruned.functions.nonEmpty =>
        s"${Reason.UnsupportedPredicate} (${pruned.functions.mkString(", ")})"
      case reason => reason.toString
    }
    if (reasons.nonEmpty) throw new SieveException("SIEVE_REQUIRED",
      s"an index of ${index.table.identifier.unquotedString} was not used: " +
        (reasons ++ Some(pruned.detail).filter(_.nonEmpty)).mkString(": ") +
        ". EXPLAIN SIEVE shows each scan; set spark.sieve.require = false to read the files.",
      state = "55000")
  }
}
