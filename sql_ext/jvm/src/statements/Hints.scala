package org.apache.spark.sql.sieve.statements

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{CreateIndex, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.index.SupportsIndex
import org.apache.spark.sql.execution.command.{LeafRunnableCommand, SetCommand}
import org.apache.spark.sql.sieve.base.{Compat, SieveException}

/**
 * A `SET` command for an unknown name with the prefix `spark.sieve.`. The command sets the value and adds a warning to
 * its result.
 */
case class UnknownSetting(set: SetCommand, warning: String) extends LeafRunnableCommand {
  override val output: Seq[Attribute] = set.output
  override def run(session: SparkSession): Seq[Row] =
    set.run(session.asInstanceOf[Compat.Session]) :+ Row("warning", warning)
}

/**
 * Makes `CREATE INDEX` without `USING` fail if the table's format has no indexes. The error message shows Sieve's own
 * statement.
 */
object CreateIndexHint extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case create: CreateIndex if create.indexType.isEmpty => create.table match {
      case ResolvedTable(_, _, _: SupportsIndex, _) => create
      case ResolvedTable(_, table, _, _) => throw new SieveException("SIEVE_SYNTAX_ERROR",
        s"Spark has no indexes on $table; to create an index of Sieve, use CREATE INDEX ${create.indexName} ON $table " +
          "USING sieve (column), or CREATE SIEVE INDEX", state = "42601")
      case _ => create
    }
    case other => other
  }
}
