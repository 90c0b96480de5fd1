package org.apache.spark.sql.sieve.observe

import scala.jdk.CollectionConverters._
import scala.util.Try
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, PlanAdaptiveDynamicPruningFilters, QueryStageExec}
import org.apache.spark.sql.execution.columnar.{InMemoryRelation, InMemoryTableScanExec}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.sieve.ask.{Pruned, Pruner}
import org.apache.spark.sql.sieve.predicate.{Filters, IndexedExpressions, TopK, Tuple}
import org.apache.spark.sql.sieve.base.{Compat, Json, Reason, Settings, SieveException}
import org.apache.spark.sql.sieve.formats.{FileRanges, TableFormat}
import org.apache.spark.sql.sieve.plan.{AmongKeys, BroadcastTuple, JoinRefusals, Loops, PlannedScan, RunTimeFilters, SieveFileIndex}

/** Plans queries without running them. Describes, as JSON, which files the queries' scans read, and why. */
object ExplainedScans {
  /**
   * Returns the file scans of a statement. For each scan, the result contains the numbers of files and bytes before and
   * after pruning, and the reasons for reading files.
   */
  def query(session: Compat.Session, text: String): String = {
    val reads = StatementReads.of(session, text)
    val (found, refusals) = JoinRefusals.during(reads.map(read => scans(session, plan(session, read.query))))
    Json.write(reads.zip(found).flatMap { case (read, scans) =>
      val rows = scans.map(described(session, _, refusals))
      rows ++ read.again(scans).map(scan => again(rows(scans.indexOf(scan)))).filter(_("files_total") != 0)
    })
  }

  private def described(
      session: Compat.Session, scan: PlannedScan, refusals: SparkPlan => Set[Reason.Reason]): Map[String, Any] = {
    val awaited = scan.awaited
    val (listed, own) = listing(session, scan, awaited)
    val notFound = if (scan.dataFilters.exists(Filters.isUnused)) Some(Reason.JoinNotRepeatable) else None
    val pruned = own.copy(reasons = own.reasons ++ (refusals(scan.node) ++ notFound).map(_ -> Pruned.files(own.remaining)))
    val predicate = (Filters.evaluable(scan.dataFilters).filterNot(TableFormat.addsFilter).map(unqualified(_).sql) ++
      awaited.map(atRunTime)).mkString(" AND ")
    val first = TopK.in(scan.dataFilters).map(unqualified(_).sql)
    sizes("total", listed) ++ sizes("read", pruned.remaining) ++ outcome(pruned) ++
      Map("ranges_total" -> pruned.ranges.total, "ranges_read" -> pruned.ranges.read,
        "table" -> scan.table.map(_.unquotedString), "predicate" -> (Seq(predicate).filter(_.nonEmpty) ++ first).mkString(" "))
  }

  /**
   * Some statements first find the files with rows to change, and then read these files again. This method describes
   * the scan that reads the files again. Sieve cannot know the second scan's files before the statement runs. So
   * EXPLAIN shows, as an upper bound, all files that the first scan reads.
   */
  private def again(first: Map[String, Any]): Map[String, Any] = first ++
    Seq("files", "ranges", "bytes").map(of => s"${of}_total" -> first(s"${of}_read")) ++
    Map("used" -> Nil, "predicate" -> "", "reasons" -> Map(Reason.FoundFile.toString -> first("files_read")))

  /**
   * The predicate in the form that an index evaluates, and the files that remain after partition pruning.
   *
   * @param keys the keys that identify the indexed or proposed expressions, as JSON
   */
  def predicate(session: Compat.Session, name: java.util.List[String], text: String, keys: String): String =
    scans(session, planned(session, name, text)) match {
      case Seq(scan) =>
        val own = scan.relation.location match {
          case index: SieveFileIndex => scan.relation.copy(location = index.delegate)(scan.relation.sparkSession)
          case _ => scan.relation
        }
        val locations = TableFormat.of(own).locations(own)
        val (partition, data) = (Filters.evaluable(scan.partitionFilters), Filters.evaluable(scan.dataFilters))
        val columns = scan.output.filterNot(a => own.partitionSchema.fieldNames.contains(a.name))
        val expressions = IndexedExpressions.of(
          Json.read(keys).asScala.map(_.asScala.map(_.asText).toSeq).toSeq, columns, TableFormat.of(own).stored(own), session)
        val files = for (directory <- own.location.listFiles(partition, data); f <- directory.files)
          yield locations.of(directory.values, f).fold(f.getPath)(_.path).toString
        Json.write(Map("predicate" -> Filters.of(scan.output, own, expressions).conjunction(data), "files" -> files))
      case found => throw new SieveException(
        "SIEVE_UNSUPPORTED_PREDICATE",
        s"the predicate makes Spark scan ${found.size} tables; name one of the table's own columns " +
          "and constants, without subqueries", state = "0A000")
    }

  /**
   * All files of a table. For each file, the result tells whether `SELECT * FROM table WHERE predicate` reads the file.
   */
  def files(session: Compat.Session, name: java.util.List[String], text: String): String = {
    val execution = planned(session, name, text)
    val table = execution.analyzed.collectFirst(PlannedScan.table(session)).get
    val relation = table.relation.asInstanceOf[HadoopFsRelation]
    // If the predicate has a subquery, the plan contains further scans, possibly even of this table.
    val own = scans(execution.executedPlan).find(_.output.exists(table.outputSet.contains))
    val cached = execution.withCachedData.exists(_.isInstanceOf[InMemoryRelation])
    val found = if (cached) Map("unread" -> "cached") else own.fold[Map[String, Any]](
      Map("unread" -> "never-true")) { scan =>
      val (listed, pruned) = listing(session, scan, Nil)
      val ranges = for (directory <- listed; f <- directory.files)
        yield f.getPath.toString -> pruned.rangesOf(directory.values, f).getOrElse(1)
      val kept = for (directory <- pruned.remaining; f <- directory.files; path = f.getPath.toString) yield {
        val known = pruned.rangesOf(directory.values, f)
        path -> Map(
          "bytes" -> FileRanges.bytes(f),
          "ranges" -> FileRanges.of(f).fold(known.getOrElse(1))(_.size),
          "unproven" -> known.left.toOption.map(_.toString))
      }
      outcome(pruned) ++ Map("listed" -> ranges.toMap, "kept" -> kept.toMap)
    }
    Json.write(found ++ Map("partitioned" -> relation.partitionSchema.nonEmpty,
      "files" -> paths(relation.location.listFiles(Nil, Nil))))
  }

  /** The plan of `SELECT * FROM table WHERE predicate`. Fails if the predicate is invalid for the table. */
  private def planned(session: Compat.Session, name: java.util.List[String], predicate: String): QueryExecution =
    try {
      val made = plan(session, filtered(session, name, predicate))
      made.assertAnalyzed()
      made
    } catch {
      case e: SieveException => throw e
      case e: AnalysisException => throw new SieveException("SIEVE_INVALID_PREDICATE",
        s"a scan of ${String.join(".", name)} cannot have this predicate: ${e.getMessage.trim}",
        state = Option(e.getSqlState).getOrElse("42000"))
    }

  private def filtered(session: Compat.Session, name: java.util.List[String], predicate: String) =
    Filter(session.sessionState.sqlParser.parseExpression(predicate), UnresolvedRelation(name.asScala.toList))

  private def plan(session: Compat.Session, query: LogicalPlan): QueryExecution =
    session.sessionState.executePlan(query, CommandExecutionMode.SKIP)

  private def scans(session: Compat.Session, planned: QueryExecution): Seq[PlannedScan] =
    scans(planned.executedPlan).distinct

  /**
   * The files of a scan after Spark's partition pruning, and the result after indexes have skipped some of these files.
   *
   * @param awaited filters whose values become known only at run time; they show which indexes the query will use
   */
  private def listing(
      session: Compat.Session, scan: PlannedScan,
      awaited: Seq[Expression]): (Seq[PartitionDirectory], Pruned) = {
    val (partition, data) = (Filters.evaluable(scan.partitionFilters), Filters.evaluable(scan.dataFilters))
    scan.relation.location match {
      case index: SieveFileIndex =>
        val listed = index.delegate.listFiles(partition, data)
        val filters = data ++ awaited.flatMap(probe(_, index))
        (listed, Pruner.prune(index, listed, filters, scan.readsRanges, index.first(scan.dataFilters)))
      case other =>
        val listed = other.listFiles(partition, data)
        (listed, Pruned.nothing(listed,
          if (Settings.enabled(session)) scan.whole.getOrElse(Reason.NoIndex) else Reason.Disabled))
    }
  }

  /**
   * The values of `filter` become known only at run time. Returns a filter that uses the same indexes as `filter`, and
   * that every row satisfies.
   */
  private def probe(filter: Expression, index: SieveFileIndex): Option[Expression] =
    BroadcastTuple.without(filter).find(index.indexed.holds).map(column => Or(valued(filter), Or(IsNull(column), IsNotNull(column))))

  /** Returns the filter with arbitrary constants in place of the values that become known only at run time. */
  private def valued(filter: Expression): Expression = filter match {
    case DynamicPruningExpression(in: InSubqueryExec) => RunTimeFilters.example(BroadcastTuple.without(in.child))
    case AmongKeys(key, _) => RunTimeFilters.example(key)
    case other => other.transform { case result: ExecSubqueryExpression => Literal.create(some(result), result.dataType) }
  }

  private def some(like: Expression): Any = Try(Literal.default(like.dataType).value).getOrElse(null)

  /** Returns the filter without table names, because the row of EXPLAIN already contains the table's name. */
  private def unqualified(filter: Expression): Expression =
    filter.transform { case a: AttributeReference => a.withQualifier(Nil) }

  /**
   * The text of a filter whose values become known only at run time. The text names the source of the values instead of
   * the values.
   */
  private def atRunTime(filter: Expression): String = filter match {
    case DynamicPruningExpression(in: InSubqueryExec) => among(in.child, scans(in.plan).flatMap(_.table))
    case AmongKeys(key, keys) => among(key, keys.collect {
      case subquery: ExecSubqueryExpression => scans(subquery.plan).flatMap(_.table)
    }.flatten, ", read for them,")
    case _ => unqualified(filter.transform {
      case subquery: PlanExpression[_] => AttributeReference("subquery at run time", subquery.dataType)()
    }).sql.replace("`subquery at run time`", "(subquery at run time)")
  }

  private def among(key: Expression, tables: Seq[TableIdentifier], how: String = ""): String = {
    val names = if (tables.isEmpty) "the join" else tables.map(_.unquotedString).distinct.mkString(", ")
    s"${Tuple.sql(unqualified(BroadcastTuple.without(key)))} IN (keys of $names$how at run time)"
  }

  private def outcome(pruned: Pruned): Map[String, Any] =
    Map("used" -> pruned.used, "reasons" -> Reason.named(pruned.reasons), "functions" -> pruned.functions)

  private def sizes(what: String, directories: Seq[PartitionDirectory]): Map[String, Any] =
    Map(s"files_$what" -> Pruned.files(directories), s"bytes_$what" -> Pruned.bytes(directories))

  private def paths(directories: Seq[PartitionDirectory]): Seq[String] =
    directories.flatMap(_.files.map(_.getPath.toString))

  /**
   * All file scans of a plan, including the scans of subqueries, of cached plans, and of the iterations of a recursive
   * query.
   */
  private def scans(plan: SparkPlan): Seq[PlannedScan] = {
    val own = plan match {
      case PlannedScan(scan) => Seq(scan)
      // Applies a rule that Spark itself applies while the query runs. If the plan has a broadcast of join keys, the
      // rule makes filters on these keys use the broadcast. If the plan has no broadcast of the keys, the rule removes
      // these filters.
      case adaptive: AdaptiveSparkPlanExec => scans(PlanAdaptiveDynamicPruningFilters(adaptive)(adaptive.inputPlan))
      case stage: QueryStageExec => scans(stage.plan)
      case cached: InMemoryTableScanExec => scans(cached.relation.cachedPlan)
      case _ => Nil
    }
    val subqueries = plan.expressions.flatMap(_.collect { case s: ExecSubqueryExpression => s.plan })
    own ++ (plan.children ++ subqueries ++ Loops.rounds(plan)).flatMap(scans)
  }
}
