package org.apache.spark.sql.sieve

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.PartitionDirectory
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}

/** Plans a query, runs nothing, and tells for each file scan what its indexes leave of it. */
object Explain {
  def query(session: Compat.Session, text: String): String = {
    val array = Link.json.createArrayNode
    planned(session, session.sessionState.sqlParser.parsePlan(text)).foreach { scan =>
      val node = array.addObject()
      node.put("table", scan.tableIdentifier.map(_.unquotedString).orNull)
      node.put("predicate", Filters.evaluable(scan.dataFilters).map(plain(_).sql).mkString(" AND "))
      val (all, pruned) = listing(session, scan)
      measure(node, "total", all)
      measure(node, "read", pruned.kept)
      pruned.used.foreach(node.withArray("used").add(_))
      val reasons = node.putObject("reasons")
      pruned.reasons.foreach { case (k, v) => reasons.put(k, v) }
    }
    Link.json.writeValueAsString(array)
  }

  /** What a query of one table asks of its rows, and the files that partition pruning leaves. */
  def asked(session: Compat.Session, name: Seq[String], predicate: String): String = planned(
      session,
      Filter(session.sessionState.sqlParser.parseExpression(predicate), UnresolvedRelation(name))) match {
    case Seq(scan) =>
      val location = scan.relation.location match {
        case index: SieveFileIndex => index.delegate
        case other => other
      }
      val (partition, data) = (Filters.evaluable(scan.partitionFilters), Filters.evaluable(scan.dataFilters))
      val node = Link.json.createObjectNode
      node.set[ObjectNode]("predicate", Filters.of(scan.output, scan.relation).conjunction(data))
      val files = node.putArray("files")
      val locations = Locations.of(scan.relation.copy(location = location)(scan.relation.sparkSession))
      for (directory <- location.listFiles(partition, data); f <- directory.files) {
        files.add(locations.of(directory.values, f).fold(f.getPath)(_.path).toString)
      }
      Link.json.writeValueAsString(node)
    case scans => throw new SieveException(
      "SIEVE_UNSUPPORTED_PREDICATE",
      s"the predicate makes Spark scan ${scans.size} tables; name one of the table's own columns " +
        "and constants, without subqueries", state = "0A000")
  }

  private def planned(session: Compat.Session, query: LogicalPlan): Seq[FileSourceScanExec] = {
    val execution = session.sessionState.executePlan(query, CommandExecutionMode.SKIP)
    scans(execution.executedPlan).distinct
  }

  /** What a scan lists, after Spark's own partition pruning, and what indexes leave of it. */
  def listing(
      session: Compat.Session, scan: FileSourceScanExec): (Seq[PartitionDirectory], Pruned) = {
    val (partition, data) = (Filters.evaluable(scan.partitionFilters), Filters.evaluable(scan.dataFilters))
    scan.relation.location match {
      case index: SieveFileIndex =>
        val listed = index.delegate.listFiles(partition, data)
        (listed, Pruner.prune(index, listed, data))
      case other =>
        val listed = other.listFiles(partition, data)
        val reason = if (Settings.enabled(session)) "no-index" else "disabled"
        (listed, Pruned(listed, Nil, Map(reason -> listed.map(_.files.size.toLong).sum)))
    }
  }

  /** Without the table before each column: the row names it already. */
  private def plain(filter: Expression): Expression =
    filter.transform { case a: AttributeReference => a.withQualifier(Nil) }

  private def measure(
      node: ObjectNode, what: String,
      directories: Seq[PartitionDirectory]): Unit = {
    val files = directories.flatMap(_.files)
    node.put(s"files_$what", files.size.toLong).put(s"bytes_$what", files.map(_.getLen).sum)
  }

  /** All scans of files in a plan, those of subqueries and cached plans included. */
  def scans(plan: SparkPlan): Seq[FileSourceScanExec] = {
    val own = plan match {
      case scan: FileSourceScanExec => Seq(scan)
      case adaptive: AdaptiveSparkPlanExec => scans(adaptive.inputPlan)
      case stage: QueryStageExec => scans(stage.plan)
      case cached: InMemoryTableScanExec => scans(cached.relation.cachedPlan)
      case _ => Nil
    }
    val below = plan.children.flatMap(scans)
    val subqueries = plan.expressions.flatMap(_.collect { case s: ExecSubqueryExpression => s.plan })
    own ++ below ++ subqueries.flatMap(scans)
  }
}
