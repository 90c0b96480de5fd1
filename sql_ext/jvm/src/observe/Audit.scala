package org.apache.spark.sql.sieve.observe

import java.util.concurrent.ThreadLocalRandom
import scala.util.control.NonFatal
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalLimit, Project}
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}
import org.apache.spark.sql.sieve.ask.{Counters, Pruned}
import org.apache.spark.sql.sieve.base.{Settings, SieveException}
import org.apache.spark.sql.sieve.formats.{PinnedFileIndex, WholeRecords}
import org.apache.spark.sql.sieve.plan.{Listing, ListingObserver, SieveFileIndex}
import org.apache.spark.sql.types.BooleanType

/**
 * Reads again the files and ranges that a scan has skipped, and fails its query if a row matches: the index would
 * have lost it.
 *
 * A row that the query wants satisfies all filters of the scan, so none that a skip lost goes
 * unnoticed. The converse does not hold: the query may have filters beside these, which need a
 * subquery or stand above the scan, and want none of the rows found. But a skip says that no row
 * satisfies the filters asked with, whatever else the query asks, and the filters here are those
 * very filters, whole: a match is always proof that the index is wrong. They are not cut down to what
 * the index understood of them, since one may guard another (`x <> 0 AND 1 / x > 2`).
 */
object Audit extends ListingObserver {
  /** Audits the share of scans that the session asks for. */
  override def listed(index: SieveFileIndex, listing: Listing): Unit = if (listing.bound.isEmpty) {
    import listing.{filters, pruned}
    if (pruned.skipped.nonEmpty &&
        ThreadLocalRandom.current.nextDouble < Settings.auditSample(index.executing)) {
      val (table, used) = (index.table.identifier.unquotedString, pruned.used.mkString(", "))
      val found =
        try matching(index, pruned, filters)
        catch {
          // An audit that could not look must not pass for one that found nothing.
          case NonFatal(e) => throw new SieveException("SIEVE_AUDIT_UNREADABLE",
            s"the files of $table that $used skips could not be read again, as " +
              s"spark.sieve.audit.sample asks: ${e.getMessage}. Where the cause is not to be " +
              "removed, SET spark.sieve.audit.sample = 0.", Some(e), "58030")
        }
      Counters.audited(pruned)
      found.foreach(file => throw new SieveException("SIEVE_AUDIT_FAILED",
        s"a row of $file satisfies the filters of a scan of $table for which $used skips the file or " +
          "the part that holds it, or may do so, being of a damaged record: rows would be missing. " +
          "SET spark.sieve.enabled = false reads the table without its " +
          s"indexes; REFRESH SIEVE INDEX ON $table FULL makes them anew. Please report this, with " +
          "the index's folder (DESCRIBE SIEVE INDEX EXTENDED tells it) as it is now.", state = "XX001"))
    }
  }

  /**
   * A skipped file with a row that satisfies the filters, or with a damaged record of a text format,
   * whose rows differ from query to query; each task stops at its first. The plan
   * is not analysed nor optimised, which the filters have been: attributes keep their ids, and
   * listeners hear of no query that nobody asked. Sieve leaves a listing of this class alone.
   */
  private def matching(
      index: SieveFileIndex, pruned: Pruned, filters: Seq[Expression]): Option[String] = {
    val session = index.executing
    val relation = WholeRecords.of(
      PinnedFileIndex.over(index.relation, pruned.skipped, index.relation.partitionSchema))
    val file = Alias(InputFileName(), "file")()
    val wanted = filters.reduce(And(_, _))
    val rows =
      if (!WholeRecords.isText(index.relation))
        Filter(wanted, index.scan.copy(relation = relation))
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
