package org.apache.spark.sql.sieve

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.planning.ScanOperation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.datasources._

/**
 * Wraps the listing of a file scan over an indexed table, as late as can be: after every rule that
 * matches on the listing's class, and on a copy, since the relation itself is shared by sessions.
 */
class SieveStrategy(session: SparkSession) extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case ScanOperation(_, _, _, scan: LogicalRelation) if Settings.enabled(session) =>
      wrapped(scan) match {
        case Some(indexed) =>
          FileSourceStrategy(plan.transform { case l: LogicalRelation if l eq scan => indexed })
            .map(plan => asked(SieveScan.in(plan, session)))
        case None => Nil
      }
    case _ => Nil
  }

  /** A plan whose scans have asked ahead: the rest of planning goes on beside the answer. */
  private def asked(plan: SparkPlan): SparkPlan = {
    plan.foreach {
      case scan: FileSourceScanExec => scan.relation.location match {
        case index: SieveFileIndex =>
          index.ask(scan.dataFilters)
        case _ =>
      }
      case _ =>
    }
    plan
  }

  private def wrapped(scan: LogicalRelation): Option[LogicalRelation] =
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
  private val kinds = Set("InMemoryFileIndex", "PrunedInMemoryFileIndex", "CatalogFileIndex")

  /** Listings whose files or file slices are read whole and as listed; any other kind is left alone. */
  def known(location: FileIndex): Boolean = Hudi.is(location) ||
    location.getClass.getName.startsWith("org.apache.spark.sql.execution.datasources.") &&
      kinds(location.getClass.getSimpleName)
}
