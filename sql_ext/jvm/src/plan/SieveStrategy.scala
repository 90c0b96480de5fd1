package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Attribute, DynamicPruning, Expression}
import org.apache.spark.sql.catalyst.planning.{PhysicalOperation, ScanOperation}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, GlobalLimit, LogicalPlan, Offset, ReturnAnswer}
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, DataSourceV2ScanRelation, DataSourceV2Strategy}
import org.apache.spark.sql.sieve.ask.Counters
import org.apache.spark.sql.sieve.predicate.IndexedColumns
import org.apache.spark.sql.sieve.base.{Compat, Reason, Settings}
import org.apache.spark.sql.sieve.catalog.{Entry, Registry}
import org.apache.spark.sql.sieve.formats.{FileRanges, PinnedFileIndex, TableFormat}

/**
 * Replaces the listing of each file scan of an indexed table by a `SieveFileIndex`. A strategy replaces the listing,
 * because strategies run after all rules that check the listing's class. The new listing is in a copy of the relation,
 * because sessions share the relation itself.
 */
class SieveStrategy(session: SparkSession) extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    // This strategy has already begun to plan this top-k query, so Spark's own strategies must now plan the query.
    case _ if TopKQuery.isBegun(plan) => Nil
    // Spark calls this strategy first for the whole query, and then, in the same thread, for the query's scans.
    case ReturnAnswer(query) =>
      SieveStrategy.showsSplits.set(CountedScan.showsSplits(query))
      TopKQuery.forget()
      bounded(plan)
    case _: GlobalLimit | _: Offset | _: Aggregate => bounded(plan)
    case ReadOnce(source) => Seq(planLater(source))
    case PhysicalOperation(_, _, _: DataSourceV2ScanRelation) => ofSource(plan, Nil).getOrElse(Nil)
    case _ => NumberedRows.filteredFirst(plan).filter(isOfIndexed).map(made => Seq(planLater(made))).getOrElse(scanned(plan))
  }

  private def scanned(plan: LogicalPlan): Seq[SparkPlan] =
    RunTimeFilteredScan.takenOff(plan) match {
      // If the scan has no index, other strategies plan the scan without its run-time filters. The scan then does not
      // wait for run-time values.
      case Some((bare, filters)) =>
        ofSource(bare, filters).orElse(
          indexed(bare).map(s => prefetched(s.map(CountedScan.withFilters(_, filters))))).getOrElse(Seq(planLater(bare)))
      case None => indexed(plan).fold[Seq[SparkPlan]](Nil)(prefetched)
    }

  /** Plans a DataSource V2 scan. Returns None if the scan's table has no index. */
  private def ofSource(plan: LogicalPlan, keys: Seq[Expression]): Option[Seq[SparkPlan]] = plan match {
    case PhysicalOperation(_, filters, scan: DataSourceV2ScanRelation) if Settings.enabled(session) =>
      if (!filters.exists(_.isInstanceOf[DynamicPruning])) noteReplaced(scan)
      val awaits = keys.nonEmpty || filters.exists(RunTimeFilters.awaits)
      val first = if (awaits) None else TopKQuery.of(plan)
      PrunedScan.of(scan, filters, first, awaits, SieveStrategy.showsSplits.get, executing).map { pruned =>
        new DataSourceV2Strategy(executing).apply(plan.transform {
          case own: DataSourceV2ScanRelation if own eq scan => own.copy(scan = pruned)
        }).map(_.transform {
          case batch: BatchScanExec if batch.scan eq pruned =>
            KeyedBatchScan(batch, pruned, keys ++ filters.filter(RunTimeFilters.ofResults(_, pruned.index.scan)))
        })
      }
    case _ => None
  }

  /**
   * Counts a scan if a statement replaces all files of the scan, and does not first search for files with rows to
   * change.
   */
  private def noteReplaced(scan: DataSourceV2ScanRelation): Unit =
    for {
      files <- TableFormat.replaced(scan.relation.table, scan.relation.options, scan.scan, scan.output, executing)
      _ <- Registry.find(executing, files.catalogTable.get)
    } Counters.refused(Reason.NoPredicate)

  private def isOfIndexed(plan: LogicalPlan): Boolean =
    Settings.enabled(session) && plan.collectLeaves().exists(indexedColumns(_).nonEmpty)

  /** Plans a query that needs only the first rows of a scan. Returns Nil for a query that needs all rows. */
  private def bounded(plan: LogicalPlan): Seq[SparkPlan] =
    if (!Settings.enabled(session) || !Settings.topPruning(session) ||
        !FileRanges.areRead(session)) Nil
    else TopKQuery.in(plan, indexedColumns).toSeq.map { top =>
      TopKQuery.within(top)(executing.sessionState.planner.plan(plan).next())
    }

  /** The relation of a scan's files, and the scan's indexed columns. Returns None for a scan without an index. */
  private def indexedColumns(leaf: LogicalPlan): Option[(LogicalRelation, IndexedColumns)] = (leaf match {
    case files: LogicalRelation => Some(files)
    case source: DataSourceV2ScanRelation => TableFormat.scanned(
      source.relation.table, source.relation.options, source.scan, source.output, executing)
    case _ => None
  }).flatMap(scan => entry(scan).map { found =>
    (scan, new IndexedColumns(scan, scan.relation.asInstanceOf[HadoopFsRelation], found, executing))
  })

  private def prepared(scan: LogicalRelation, plan: LogicalPlan): Option[LogicalPlan] = scan.relation match {
    case fs: HadoopFsRelation => TableFormat.of(fs).prepared(session, plan)
    case _ => Some(plan)
  }

  /** Plans a scan of an indexed table, or a scan of ranges of files. Returns None for any other scan. */
  private def indexed(plan: LogicalPlan): Option[Seq[SparkPlan]] = plan match {
    case ScanOperation(_, _, _, scan: LogicalRelation) if SieveStrategy.isOfRanges(scan) =>
      Some(FileSourceStrategy(plan).map(CountedScan.in(_, session)))
    case ScanOperation(_, _, _, scan: LogicalRelation) if Settings.enabled(session) =>
      // The table format can change the plan in `prepared`, so the relation `own` can differ from `scan`.
      entry(scan).flatMap(found => prepared(scan, plan).collect {
        case whole @ ScanOperation(_, _, filters, own: LogicalRelation) =>
          val indexed = wrap(own, found, filters)
          FileSourceStrategy(whole.transform { case l: LogicalRelation if l eq own => indexed })
            .map(CountedScan.in(_, session))
            .map(CountedScan.withFilters(_, filters.filter(RunTimeFilters.ofResults(_, indexed))))
            .map(made => TopKQuery.of(plan).fold(made)(TopKQuery.bounding(made, _)))
      })
    case _ => None
  }

  /** Sends the requests of the scans early, so that planning continues while the front end answers. */
  private def prefetched(planned: Seq[SparkPlan]): Seq[SparkPlan] = {
    for (one <- planned; scan <- one.collect { case s: FileSourceScanExec => s })
      scan.relation.location match {
        // A scan with run-time values sends no early request, because its request will depend on these values.
        case index: SieveFileIndex if !scan.dataFilters.exists(RunTimeFilters.awaits) =>
          index.prefetch(scan.dataFilters)
        case _ =>
      }
    planned
  }

  private def executing: Compat.Session = session.asInstanceOf[Compat.Session]

  private def entry(scan: LogicalRelation): Option[Entry] = (scan.relation, scan.catalogTable) match {
    case (fs: HadoopFsRelation, Some(table)) if !scan.isStreaming && TableFormat.isKnown(fs) =>
      Registry.find(executing, table)
    case _ => None
  }

  private def wrap(scan: LogicalRelation, entry: Entry, filters: Seq[Expression]): LogicalRelation = {
    val fs = scan.relation.asInstanceOf[HadoopFsRelation]
    // Spark does not pass a filter to the scan if the filter uses both partition columns and other columns.
    def isPartition(a: Attribute) = fs.partitionSchema.fieldNames.contains(a.name)
    val indexed = new IndexedColumns(scan, fs, entry, executing)
    val mixes = filters.exists(f => f.references.exists(isPartition) && f.exists(indexed.contains))
    val index = new SieveFileIndex(
      scan, fs, scan.catalogTable.get, entry, executing, SieveStrategy.showsSplits.get, mixes)
    scan.copy(relation = fs.copy(location = index)(fs.sparkSession))
  }
}

object SieveStrategy {
  /**
   * Whether the rows of the current query can depend on how files are split. The thread holds this state, because Spark
   * creates a new strategy for each part of a query.
   */
  private val showsSplits = ThreadLocal.withInitial[Boolean](() => false)

  /** True if the listing restricts files to ranges. Spark's own scan would ignore the ranges. */
  private def isOfRanges(scan: LogicalRelation): Boolean = scan.relation match {
    case fs: HadoopFsRelation => fs.location match {
      case pinned: PinnedFileIndex => pinned.hasRanges
      case _ => false
    }
    case _ => false
  }
}
