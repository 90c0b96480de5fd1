package org.apache.spark.sql.sieve.plan

import scala.jdk.CollectionConverters._
import scala.util.Try
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{FILTER, JOIN, SORT}
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.sieve.ask.FrontendProcess
import org.apache.spark.sql.sieve.base.{Compat, Settings, TableProperties}
import org.apache.spark.sql.sieve.catalog.Registry

/**
 * Starts the front end when Spark analyses the driver's first query that can use an index. The front end then starts
 * while Spark plans the query.
 */
class StartFrontend(session: Compat.Session) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (FrontendProcess.isNew && plan.containsAnyPattern(FILTER, JOIN, SORT) && plan.exists(isIndexed) &&
        Settings.enabled(session)) FrontendProcess.startBeside(session)
    plan
  }

  private def isIndexed(node: LogicalPlan): Boolean = node match {
    case scan: LogicalRelation => scan.catalogTable.exists(Registry.registrations(_).nonEmpty)
    // A DataSource V2 relation can be a table of any data source, and the methods of the table might fail.
    case source: DataSourceV2Relation =>
      Try(source.table.properties.keySet.asScala.exists(_.startsWith(TableProperties.registrations))).getOrElse(false)
    case _ => false
  }
}
