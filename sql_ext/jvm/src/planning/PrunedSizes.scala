package org.apache.spark.sql.sieve

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.catalyst.expressions.{Expression, IsNotNull}
import org.apache.spark.sql.catalyst.planning.ScanOperation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN
import org.apache.spark.sql.execution.datasources.{DataSourceStrategy, FileIndex, HadoopFsRelation, InMemoryFileIndex, LogicalRelation}

/**
 * Tells the planner of joins how much of a table an index leaves, so that a table of which few files are
 * read is broadcast. Only statistics change, as Spark's own pruning of partitions changes them: hints and
 * thresholds keep their meaning. The scan asks the same question and takes this answer.
 */
class PrunedSizes(session: SparkSession) extends Rule[LogicalPlan] {
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
      case (files: HadoopFsRelation, Some(table))
          if SieveStrategy.known(files) && isListed(files.location) && isWanted(scan) =>
        for {
          entry <- Registry.find(executing, table)
          partitions = files.partitionSchema.fieldNames.toSet
          known = Filters.evaluable(DataSourceStrategy.normalizeExprs(filters, scan.output))
          asked = known.filter(_.references.forall(a => !partitions(a.name)))
          if asked.exists(isSelective(_, entry.columns.map(_.head)))
          ofPartitions = known.filter(f => f.references.nonEmpty && f.references.forall(a => partitions(a.name)))
          index = new SieveFileIndex(scan, files, table, entry, executing, showsSplits = false)
          (kept, all, question) <- index.estimate(ofPartitions, asked) if kept < all
        } yield {
          // Hudi's size is of all partitions that it has listed.
          val bytes = (scan.stats.sizeInBytes * kept / all.max(files.location.sizeInBytes)).max(1)
          val own = scan.copy(catalogTable = Some(table.copy(stats = Some(CatalogStatistics(bytes)))))
          own.copyTagsFrom(scan)
          question.foreach(own.setTagValue(PrunedSizes.asked, _))
          own
        }
      case _ => None
    }

  /** Whether listing asks no storage: Spark's rules have pruned it by partitions, or Hudi's have. */
  private def isListed(location: FileIndex): Boolean =
    location.isInstanceOf[InMemoryFileIndex] || Hudi.isListed(location)

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

  private def executing: Compat.Session = session.asInstanceOf[Compat.Session]
}

object PrunedSizes {
  /** What a scan was asked for its size. */
  val asked: TreeNodeTag[Prefetch] = TreeNodeTag("sieve.asked_for_size")
}
