package org.apache.spark.sql.sieve.observe

import java.util.concurrent.ThreadLocalRandom
import scala.util.control.NonFatal
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalLimit, Project}
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}
import org.apache.spark.sql.sieve.ask.{Counters, Pruned}
import org.apache.spark.sql.sieve.base.{Settings, SieveException}
import org.apache.spark.sql.sieve.formats.{PinnedFileIndex, TableFormat, WholeRecords}
import org.apache.spark.sql.sieve.plan.{Listing, ListingObserver, SieveFileIndex}
import org.apache.spark.sql.types.BooleanType

/**
 * Reads the files and ranges that a scan skipped. If a row in these files and ranges satisfies the scan's filters, the
 * index is wrong, and the query fails.
 *
 * The audit evaluates all filters that the index evaluated. Each row of the query's result satisfies these filters, so
 * the audit finds every lost row. If the index skips a file, it claims that no row of the file satisfies the filters
 * that the index evaluated. So a match proves that the index is wrong, even if another filter of the query excludes the
 * row. The audit evaluates whole filters, not only the parts that the index can evaluate. In `x <> 0 AND 1 / x > 2`,
 * for example, the first part prevents an error in the second part.
 */
object Audit extends ListingObserver {
  /**
   * Audits a sample of the scans. The session's setting `spark.sieve.audit.sample` determines the share of audited
   * scans.
   */
  override def listed(index: SieveFileIndex, listing: Listing): Unit = if (listing.bound.isEmpty) {
    import listing.{filters, pruned}
    if (pruned.skipped.nonEmpty &&
        ThreadLocalRandom.current.nextDouble < Settings.auditSample(index.executing)) {
      val (table, used) = (index.table.identifier.unquotedString, pruned.used.mkString(", "))
      val found =
        try matching(index, pruned, filters)
        catch {
          // If the audit cannot read the files, the query fails, because otherwise the audit would seem to have found
          // no match.
          case NonFatal(e) => throw new SieveException("SIEVE_AUDIT_UNREADABLE",
            s"an audit (spark.sieve.audit.sample) could not read the files of $table that $used skips: " +
              s"${e.getMessage}. If the cause cannot be removed, SET spark.sieve.audit.sample = 0.", Some(e), "58030")
        }
      Counters.audited(pruned)
      found.foreach(file => throw new SieveException("SIEVE_AUDIT_FAILED",
        s"a row of $file satisfies the filters of a scan of $table, but $used would skip the file, or the part of " +
          "the file, that holds (or, its record being corrupt, may hold) this row. " +
          "SET spark.sieve.enabled = false reads the table without its " +
          s"indexes; REFRESH SIEVE INDEX ON $table FULL rebuilds them. Please report this, with a copy of " +
          "the index's present folder (DESCRIBE SIEVE INDEX EXTENDED shows its path).", state = "XX001"))
    }
  }

  /**
   * Returns the name of a skipped file in which some row satisfies the filters. In text formats, a damaged record also
   * counts as a match, because its values can depend on which columns a query reads. Each task stops at its first
   * match. The filters are already analysed and optimised, so the plan runs without analysis and optimisation. Without
   * analysis and optimisation, attributes keep their ids, and listeners see no extra query. Sieve does not prune the
   * listing of this plan.
   */
  private def matching(
      index: SieveFileIndex, pruned: Pruned, filters: Seq[Expression]): Option[String] = {
    val session = index.executing
    def relation = WholeRecords.of(
      PinnedFileIndex.over(index.relation, pruned.skipped, index.relation.partitionSchema))
    val file = Alias(InputFileName(), "file")()
    val wanted = filters.reduce(And(_, _))
    val rows =
      if (!WholeRecords.isText(index.relation))
        Filter(wanted, TableFormat.of(index.relation).reading(index.scan, index.relation, pruned.skipped)
          .getOrElse(index.scan.copy(relation = relation)))
      else {
        val damaged = AttributeReference(WholeRecords.damaged, BooleanType, nullable = false)()
        val scan = index.scan.copy(relation = relation, output = index.scan.output :+ damaged)
        Filter(Or(damaged, wanted), scan)
      }
    val one = LocalLimit(Literal(1), Project(Seq(file), rows))
    session.withActive(SQLExecution.withSQLConfPropagated(session) {
      QueryExecution.prepareExecutedPlan(session, one).executeCollect().headOption.map(_.getString(0))
    })
  }
}
