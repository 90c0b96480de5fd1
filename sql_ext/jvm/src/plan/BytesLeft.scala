package org.apache.spark.sql.sieve.plan

import java.util.IdentityHashMap
import org.apache.spark.sql.catalyst.expressions.{Expression, IsNotNull}
import org.apache.spark.sql.catalyst.planning.ScanOperation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.sieve.ask.{Filters, IndexedColumns, Pruner}
import org.apache.spark.sql.sieve.base.{Compat, Reason, Settings}
import org.apache.spark.sql.sieve.base.Reason.Reason
import org.apache.spark.sql.sieve.catalog.Registry
import org.apache.spark.sql.sieve.formats.TableFormat

/**
 * The number of bytes that each scan of a plan will read. The number is Spark's estimate, or a smaller number if an
 * index skips files. The numbers are used only to estimate the cost of a job that reads keys. Spark's join planner
 * must not use the numbers: a few bytes of a file can contain millions of rows, and a broadcast must fit into
 * memory.
 *
 * @param plan the plan with the scans whose bytes are estimated, and with the filters above them
 */
class BytesLeft(session: Compat.Session, plan: LogicalPlan) {
  private val priced = new IdentityHashMap[LogicalPlan, BigInt]
  private lazy val filters: IdentityHashMap[LogicalPlan, Seq[Expression]] = {
    val found = new IdentityHashMap[LogicalPlan, Seq[Expression]]
    def add(plan: LogicalPlan): Unit = plan match {
      case ScanOperation(_, _, own, scan: LogicalRelation) =>
        // No filter is used for a relation that occurs twice in a plan, below different filters.
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
   * The reason why no index can be used for any of these scans in this session. None if an index is possibly usable for
   * one scan. If a failure is an error (`spark.sieve.strict`), the scan itself must raise the error.
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
          // Spark adds IS NOT NULL on join keys, which is not selective.
          if asked.exists(f => !f.isInstanceOf[IsNotNull] && indexed.occurIn(f))
          listed <- TableFormat.of(files).listed(files.location, known)
          bytes <- new SieveFileIndex(scan, files, table, entry, session, showsSplits = false).estimate(listed, asked)
        } yield BigDecimal(bytes * session.sessionState.conf.fileCompressionFactor).toBigInt
      case _ => None
    }
}
