package org.apache.spark.sql.sieve

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.planning.ScanOperation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources._

/**
 * Wraps the listing of a file scan over an indexed table, as late as can be: after every rule that
 * matches on the listing's class, and on a copy, since sessions share the relation itself.
 */
class SieveStrategy(session: SparkSession) extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case ScanOperation(_, _, _, scan: LogicalRelation) if Settings.enabled(session) =>
      wrap(scan).toSeq.flatMap { indexed =>
        val planned = FileSourceStrategy(plan.transform { case l: LogicalRelation if l eq scan => indexed })
          .map(CountedScan.in(_, session))
        // The rest of planning goes on beside the answer.
        for (one <- planned; scan <- one.collect { case s: FileSourceScanExec => s })
          scan.relation.location match {
            case index: SieveFileIndex => index.prefetch(scan.dataFilters)
            case _ =>
          }
        planned
      }
    case _ => Nil
  }

  private def wrap(scan: LogicalRelation): Option[LogicalRelation] =
    (scan.relation, scan.catalogTable) match {
      case (fs: HadoopFsRelation, Some(table))
          if !scan.isStreaming && SieveStrategy.known(fs.location) =>
        val executing = session.asInstanceOf[Compat.Session]
        Registry.find(executing, table).map { entry =>
          val index = new SieveFileIndex(scan, fs, table, entry, executing)
          scan.copy(relation = fs.copy(location = index)(fs.sparkSession))
        }
      case _ => None
    }
}

object SieveStrategy {
  private val listings = Policy.texts("/listings").toSet

  /** Whether a listing's files or file slices are read whole and as listed; others are left alone. */
  def known(location: FileIndex): Boolean = Hudi.is(location) || listings(location.getClass.getName)
}
