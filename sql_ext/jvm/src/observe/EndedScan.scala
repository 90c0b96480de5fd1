package org.apache.spark.sql.sieve.observe

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.sieve.ask.Pruned
import org.apache.spark.sql.sieve.predicate.Filters
import org.apache.spark.sql.sieve.formats.TableFormat
import org.apache.spark.sql.sieve.plan.{PlannedScan, PrunedScan, SieveFileIndex}

/**
 * A scan of a table's files in a query that has ended. The scan used version 1 or 2 of Spark's data source interface.
 *
 * @param filters the query's filters, which the scanned rows must satisfy
 */
final case class EndedScan(
    node: SparkPlan, table: TableIdentifier, relation: HadoopFsRelation, filters: Seq[Expression], files: Long,
    filesSkipped: Long, bytes: Long, bytesSkipped: Long) {
  /** The listing that Sieve has pruned. Returns None if the table has no index. */
  def index: Option[SieveFileIndex] = relation.location match {
    case own: SieveFileIndex => Some(own)
    case _ => None
  }
}

object EndedScan extends PredicateHelper {
  /** All executed scans of a plan. A scan that has not run has listed no files. */
  def in(plan: SparkPlan): Seq[EndedScan] = below(plan, Nil).filter(scan => scan.files + scan.filesSkipped > 0)

  /**
   * @param above the conditions of the filters directly above `plan`; projections may be between the filters
   */
  private def below(plan: SparkPlan, above: Seq[Expression]): Seq[EndedScan] = ended(plan, above).toSeq ++ (plan match {
    case FilterExec(condition, child) => below(child, above ++ splitConjunctivePredicates(condition))
    case node if isTransparent(node) => below(node.children.head, above)
    case _ => Nil
  }) ++ (if (isTransparent(plan)) Nil else inner(plan)).flatMap(below(_, Nil)) ++ subqueries(plan).flatMap(below(_, Nil))

  def isTransparent(node: SparkPlan): Boolean = node match {
    case _: ProjectExec | _: FilterExec | _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec => true
    case _ => false
  }

  /** All nodes of an executed plan, including the nodes of stages and subqueries. */
  def nodes(plan: SparkPlan): Seq[SparkPlan] = plan +: (inner(plan) ++ subqueries(plan)).flatMap(nodes)

  private def inner(plan: SparkPlan): Seq[SparkPlan] = plan match {
    case adaptive: AdaptiveSparkPlanExec => Seq(adaptive.executedPlan)
    case stage: QueryStageExec => Seq(stage.plan)
    case _ => plan.children
  }

  private def subqueries(plan: SparkPlan): Seq[SparkPlan] =
    plan.expressions.flatMap(_.collect { case s: ExecSubqueryExpression => s.plan })

  private def ended(node: SparkPlan, above: Seq[Expression]): Option[EndedScan] = node match {
    case scan: FileSourceScanExec => scan.tableIdentifier.map(counted(scan, _, scan.relation, scan.dataFilters))
    case batch: BatchScanExec => PlannedScan.unapply(batch).filter(_.whole.isEmpty).flatMap { scan =>
      scan.table.collect {
        case table if batch.scan.isInstanceOf[PrunedScan] => counted(batch, table, scan.relation, scan.dataFilters)
        // A scan with a nonzero metric has run, so the scan's source has planned the files.
        case table if batch.metrics.values.exists(!_.isZero) =>
          val listed = scan.relation.location.listFiles(Nil, Nil)
          EndedScan(batch, table, scan.relation, above.filter(_.references.subsetOf(batch.outputSet)),
            Pruned.files(listed), 0, Pruned.bytes(listed), 0)
      }
    }
    case _ => None
  }

  private def counted(
      node: SparkPlan, table: TableIdentifier, relation: HadoopFsRelation, filters: Seq[Expression]): EndedScan = {
    def value(metric: String): Long = node.metrics.get(metric).fold(0L)(m => math.max(0L, m.value))
    EndedScan(node, table, relation, Filters.evaluable(filters).filterNot(TableFormat.addsFilter),
      value("numFiles"), value("numFilesSkipped"), value("filesSize"), value("bytesSkipped"))
  }
}
