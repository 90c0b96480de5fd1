package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, DataSourceV2Relation}
import org.apache.spark.sql.sieve.predicate.Filters
import org.apache.spark.sql.sieve.base.{Compat, Reason}
import org.apache.spark.sql.sieve.base.Reason.Reason
import org.apache.spark.sql.sieve.catalog.Registry
import org.apache.spark.sql.sieve.formats.TableFormat
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A scan of data files in a physical plan. The scan uses version 1 or 2 of Spark's data source interface.
 *
 * @param awaited     the filters that an index evaluates when their run-time values are known
 * @param readsRanges whether the scan reads single ranges of files
 * @param whole       the reason why a statement that replaces files reads all files of an indexed table
 */
final case class PlannedScan(
    node: SparkPlan, relation: HadoopFsRelation, table: Option[TableIdentifier],
    partitionFilters: Seq[Expression], dataFilters: Seq[Expression], awaited: Seq[Expression],
    readsRanges: Boolean, whole: Option[Reason] = None) {
  def output: Seq[Attribute] = node.output
}

object PlannedScan {
  def unapply(plan: SparkPlan): Option[PlannedScan] = plan match {
    case scan: FileSourceScanExec =>
      val ranges = scan match {
        case counted: CountedScan => counted.readsRanges
        case _ => false
      }
      Some(PlannedScan(scan, scan.relation, scan.tableIdentifier, scan.partitionFilters, scan.dataFilters,
        RunTimeFilters.awaited(scan), ranges))
    case batch: BatchScanExec => batch.scan match {
      case pruned: PrunedScan =>
        val relation = pruned.index.relation
        Some(ofSource(batch, relation.copy(location = pruned.index)(relation.sparkSession),
          pruned.index.table.identifier, pruned.filters ++ batch.runtimeFilters.map(KeysOfExpression.without).filter(Filters.isUnused),
          RunTimeFilters.awaited(pruned.index, batch.runtimeFilters)).copy(readsRanges = !pruned.index.showsSplits))
      case own =>
        val options = CaseInsensitiveStringMap.empty
        def of(files: LogicalRelation) = ofSource(batch, relation(files), files.catalogTable.get.identifier, Nil, Nil)
        TableFormat.scanned(batch.table, options, own, batch.output, session(batch)).map(of).orElse(
          // A subquery finds the files of a scan with run-time filters, so this scan does not read all files.
          if (batch.runtimeFilters.nonEmpty) None
          else TableFormat.replaced(batch.table, options, own, batch.output, session(batch)).map { files =>
            of(files).copy(whole = Registry.find(session(batch), files.catalogTable.get).map(_ => Reason.NoPredicate))
          })
    }
    case _ => None
  }

  private def ofSource(
      node: SparkPlan, relation: HadoopFsRelation, table: TableIdentifier, filters: Seq[Expression],
      awaited: Seq[Expression]): PlannedScan =
    PlannedScan(node, relation, Some(table), Nil, filters, awaited, readsRanges = false)

  private def session(node: SparkPlan): Compat.Session = node.session.asInstanceOf[Compat.Session]
  private def relation(files: LogicalRelation): HadoopFsRelation = files.relation.asInstanceOf[HadoopFsRelation]

  /** Matches a table in an analysed plan, and returns the table's files. */
  def table(session: Compat.Session): PartialFunction[LogicalPlan, LogicalRelation] =
    Function.unlift {
      case files: LogicalRelation => Some(files)
      case source: DataSourceV2Relation => TableFormat.named(source, session).map(_.copy(output = source.output))
      case _ => None
    }
}
