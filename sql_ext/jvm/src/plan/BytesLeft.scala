package org.apache.spark.sql.sieve.plan

import java.util.IdentityHashMap
import org.apache.spark.sql.catalyst.expressions.{Expression, IsNotNull}
import org.apache.spark.sql.catalyst.planning.ScanOperation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.sieve.ask.Pruner
import org.apache.spark.sql.sieve.predicate.{Filters, IndexedColumns}
import org.apache.spark.sql.sieve.base.{Compat, Reason, Settings}
import org.apache.spark.sql.sieve.base.Reason.Reason
import org.apache.spark.sql.sieve.catalog.Registry
import org.apache.spark.sql.sieve.formats.TableFormat

/**
 * Estimates how many bytes each scan of a plan will read. Without an index, Spark's own estimate counts. If an index
 * skips files, the estimate is smaller. Sieve uses these estimates only to decide whether a job that reads join keys
 * costs too much. Spark's join planner must not use Sieve's estimates: a few bytes of a file can contain millions of
 * rows, but a broadcast must fit into memory.
 *
 * @param plan the plan that contains the scans, and the filters above the scans
 */
class BytesLeft(session: Compat.Session, plan: LogicalPlan) {
  private val priced = new IdentityHashMap[LogicalPlan, BigInt]
  private lazy val filters: IdentityHashMap[LogicalPlan, Seq[Expression]] = {
    val found = new IdentityHashMap[LogicalPlan, Seq[Expression]]
    def add(plan: LogicalPlan): Unit = plan match {
      case ScanOperation(_, _, own, scan: LogicalRelation) =>
        // If a plan contains a relation twice, below different filters, the estimate ignores these filters.
        found.put(scan, if (found.containsKey(scan)) Nil else own)
      case _ => plan.children.foreach(add)
    }
    add(plan)
    found
  }

  def apply(leaf: LogicalPlan): BigInt = priced.computeIfAbsent(leaf, _ => leaf match {
    case scan: LogicalRelation =>
      left(scan, filters.getOrDefault(scan, Nil)).fold(scan.stats.sizeInBytes)(_.min(scan.stats.sizeInBytes))
    case _ => leaf.stats.sizeInBytes
  })

  /**
   * The reason why the keys cannot prune their scans. Returns None if an index might prune at least one scan. Also
   * returns None if `spark.sieve.strict` or `spark.sieve.require` is set, because the scan itself must then raise the
   * error.
   */
  def unserved(keys: Seq[(LogicalRelation, Expression)]): Option[Reason] =
    if (Settings.strict(session) || Settings.required(session)) None
    else {
      val why = keys.iterator.map { case (scan, key) => unserved(scan, key) }.takeWhile(_.nonEmpty).toSeq
      if (why.size < keys.size) None else why.flatten.headOption
    }

  private def unserved(scan: LogicalRelation, key: Expression): Option[Reason] = (scan.relation, scan.catalogTable) match {
    case (files: HadoopFsRelation, Some(table)) if !TableFormat.of(files).isAsOf(files) =>
      Registry.find(session, table).map { entry =>
        val index = new SieveFileIndex(scan, files, table, entry, session, showsSplits = false)
        Pruner.prune(index, Nil, Seq(RunTimeFilters.example(key)), inRanges = false)
      }.filter(_.used.isEmpty).flatMap(_.reasons.keys.find(_ != Reason.UnsupportedPredicate))
    case _ => None
  }

  private def left(scan: LogicalRelation, filters: Seq[Expression]): Option[BigInt] =
    (scan.relation, scan.catalogTable) match {
      case (files: HadoopFsRelation, Some(table)) if TableFormat.isKnown(files) =>
        for {
          entry <- Registry.find(session, table)
          partitions = files.partitionSchema.fieldNames.toSet
          known = Filters.evaluable(DataSourceStrategy.normalizeExprs(filters, scan.output))
          asked = known.filter(_.references.forall(a => !partitions(a.name)))
          indexed = new IndexedColumns(scan, files, entry, session)
          // Spark adds IS NOT NULL filters on join keys. An IS NOT NULL filter does not count, because it is not
          // selective.
          if asked.exists(f => !f.isInstanceOf[IsNotNull] && indexed.occurIn(f))
          listed <- TableFormat.of(files).listed(files.location, known)
          bytes <- new SieveFileIndex(scan, files, table, entry, session, showsSplits = false).estimate(listed, asked)
        } yield BigDecimal(bytes * session.sessionState.conf.fileCompressionFactor).toBigInt
      case _ => None
    }
}
