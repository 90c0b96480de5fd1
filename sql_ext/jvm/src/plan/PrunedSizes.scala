package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.catalyst.expressions.{Expression, IsNotNull}
import org.apache.spark.sql.catalyst.planning.ScanOperation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.sieve.ask.{Filters, Prefetch}
import org.apache.spark.sql.sieve.base.{Compat, Settings}
import org.apache.spark.sql.sieve.catalog.Registry
import org.apache.spark.sql.sieve.formats.TableFormat

/**
 * Tells the planner of joins how much of a table an index leaves, so that a table of which few files are
 * read is broadcast. Only statistics change, as Spark's own pruning of partitions changes them: hints and
 * thresholds keep their meaning. The scan asks the same question and takes this answer. `JoinPruning` puts
 * it after Spark's rules: partitions are pruned by then.
 */
class PrunedSizes(session: Compat.Session) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (plan.isStreaming || !plan.containsPattern(JOIN) || !Settings.enabled(session) || !Settings.joinPruning(session)) plan
    else JoinPruning.orUnchanged(plan)(sized(plan))

  private def sized(plan: LogicalPlan): LogicalPlan = plan match {
    case ScanOperation(_, _, filters, scan: LogicalRelation) =>
      estimate(scan, filters).fold(plan)(own => plan.transform { case l: LogicalRelation if l eq scan => own })
    case _ => plan.mapChildren(sized)
  }

  private def estimate(scan: LogicalRelation, filters: Seq[Expression]): Option[LogicalRelation] =
    (scan.relation, scan.catalogTable) match {
      case (files: HadoopFsRelation, Some(table)) if TableFormat.isKnown(files) =>
        for {
          entry <- Registry.find(session, table) if isWanted(scan)
          partitions = files.partitionSchema.fieldNames.toSet
          known = Filters.evaluable(DataSourceStrategy.normalizeExprs(filters, scan.output))
          asked = known.filter(_.references.forall(a => !partitions(a.name)))
          if asked.exists(isSelective(_, entry.columns.map(_.head)))
          listed <- TableFormat.of(files).listed(files.location, known)
          index = new SieveFileIndex(scan, files, table, entry, session, showsSplits = false)
          (kept, question) <- index.estimate(listed, asked)
          bytes = BigDecimal(kept * session.sessionState.conf.fileCompressionFactor).toBigInt.max(1)
          if bytes < scan.stats.sizeInBytes
        } yield {
          val own = scan.copy(catalogTable = Some(table.copy(stats = Some(CatalogStatistics(bytes)))))
          own.copyTagsFrom(scan)
          question.foreach(own.setTagValue(PrunedSizes.asked, _))
          own
        }
      case _ => None
    }

  /** Spark asks each side of a join for its keys' being there. */
  private def isSelective(filter: Expression, indexed: Set[String]): Boolean =
    !filter.isInstanceOf[IsNotNull] && filter.references.exists(a => indexed(a.name))

  /** Whether its size can make a difference. Where rows are counted Spark's own estimates know better. */
  private def isWanted(scan: LogicalRelation): Boolean = {
    val conf = session.sessionState.conf
    scan.getTagValue(PrunedSizes.asked).isEmpty && !scan.isStreaming &&
      !((conf.cboEnabled || conf.planStatsEnabled) && scan.stats.rowCount.nonEmpty) &&
      scan.stats.sizeInBytes > conf.autoBroadcastJoinThreshold
  }
}

object PrunedSizes {
  /** What a scan was asked for its size. */
  val asked: TreeNodeTag[Prefetch] = TreeNodeTag("sieve.asked_for_size")
}
