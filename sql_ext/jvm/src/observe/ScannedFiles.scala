package org.apache.spark.sql.sieve

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.plans.logical.Filter
import org.apache.spark.sql.execution.{CommandExecutionMode, FileSourceScanExec}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation, PartitionDirectory}

/** Each file of a table, and what `SELECT * FROM table WHERE predicate` does with it; nothing is run. */
object ScannedFiles {
  def of(session: Compat.Session, name: Seq[String], predicate: String): String = {
    val execution =
      try {
        val filter = session.sessionState.sqlParser.parseExpression(predicate)
        val made = session.sessionState.executePlan(
          Filter(filter, UnresolvedRelation(name)), CommandExecutionMode.SKIP)
        made.assertAnalyzed()
        made
      } catch {
        case e: SieveException => throw e
        case e: AnalysisException => throw new SieveException("SIEVE_INVALID_PREDICATE",
          s"a scan of ${name.mkString(".")} cannot have this predicate: ${e.getMessage.trim}",
          state = Option(e.getSqlState).getOrElse("42000"))
      }
    val table = execution.analyzed.collectFirst { case l: LogicalRelation => l }.get
    val node = Link.json.createObjectNode
    val relation = table.relation.asInstanceOf[HadoopFsRelation]
    node.put("partitioned", relation.partitionSchema.nonEmpty)
    val all = node.putArray("files")
    files(relation.location.listFiles(Nil, Nil)).foreach(f => all.add(f.getPath.toString))
    // A predicate with a subquery may have further scans, of this very table too.
    val scan = Explain.scans(execution.executedPlan).find(_.output.exists(table.outputSet.contains))
    if (execution.withCachedData.exists(_.isInstanceOf[InMemoryRelation])) node.put("unread", "cached")
    else scan.fold[Unit](node.put("unread", "never-true"))(tell(node, session, _))
    Link.json.writeValueAsString(node)
  }

  private def tell(node: ObjectNode, session: Compat.Session, scan: FileSourceScanExec): Unit = {
    val (listed, pruned) = Explain.listing(session, scan)
    pruned.used.foreach(node.withArray("used").add(_))
    pruned.reasons.foreach { case (k, v) => node.withObject("/reasons").put(k, v) }
    files(listed).foreach(f => node.withArray("listed").add(f.getPath.toString))
    for (directory <- pruned.kept; f <- directory.files) {
      node.withObject("/kept")
        .put(f.getPath.toString, pruned.unproven(directory.values, f).getOrElse(""))
    }
  }

  private def files(directories: Seq[PartitionDirectory]) = directories.flatMap(_.files)
}
