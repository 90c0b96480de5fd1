package org.apache.spark.sql.sieve

/** `spark.sieve.require`: a query fails where an index could serve its filter and was not used. */
object Required {
  // Nothing is wrong with any index: there is none, none is asked, or it is switched off.
  private val allowed = Set("no-index", "no-predicate", "disabled")
  // Files that an index was asked of and does not know are what REFRESH is for.
  private val ofFiles = Set("new-file", "unsettled-file", "changed-file")

  def check(index: SieveFileIndex, pruned: Pruned): Unit = if (Settings.required(index.executing)) {
    // Where an index has narrowed the scan, parts of the filter that it could not take are no matter.
    val ofParts = if (pruned.narrows) Set("unsupported-predicate") else Set.empty[String]
    val reasons = (pruned.reasons.keySet -- allowed -- ofFiles -- ofParts).toSeq.sorted
    if (reasons.nonEmpty) throw new SieveException("SIEVE_REQUIRED",
      s"an index of ${index.table.identifier.unquotedString} was not used: " +
        (reasons ++ Some(pruned.detail).filter(_.nonEmpty)).mkString(": ") +
        ". EXPLAIN SIEVE tells of each scan; set spark.sieve.require = false to read the files.",
      state = "55000")
  }
}
