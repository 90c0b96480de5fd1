package org.apache.spark.sql.sieve.observe

import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.{CommandExecutionMode, QueryExecution}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sieve.predicate.Filters
import org.apache.spark.sql.sieve.base.{Compat, SieveException}
import org.apache.spark.sql.sieve.formats.TableFormat
import org.apache.spark.sql.sieve.plan.{PlannedScan, ReadOnce}

/**
 * Spark plans the scans of many statements only while the statement runs. So this object finds queries that run the
 * same scans as a statement. Spark can plan these queries without running the statement.
 */
object StatementReads {
  /**
   * A query that runs scans of a statement.
   *
   * @param again finds the scan of the query whose files the statement reads again to change rows
   */
  final case class Read(query: LogicalPlan, again: Seq[PlannedScan] => Option[PlannedScan] = _ => None)

  /**
   * Returns the queries that a statement runs to find rows. Fails if Spark knows the queries only while the statement
   * runs.
   */
  def of(session: Compat.Session, text: String): Seq[Read] = {
    val statement = session.sessionState.sqlParser.parsePlan(text)
    // This code makes Spark analyse and plan the statement, because Spark may reject the statement. For example, Spark
    // rejects an UPDATE of a table whose format cannot change rows.
    val changed = if (statement.exists(changesRows)) Some(analysed(session, statement)) else None
    changed.foreach(_.executedPlan)
    val found = changed.map(_.analyzed) match {
      case Some(write: V2WriteCommand) => Seq(Read(statement, rewritten(session, write)))
      case _ => queries(session, statement)
    }
    if (found.isEmpty) throw new SieveException(
      "SIEVE_UNSUPPORTED_STATEMENT",
      "EXPLAIN SIEVE shows the scans of a query, INSERT, CREATE TABLE AS SELECT, DELETE, UPDATE or MERGE, but " +
        s"not those of `${text.trim.take(60)}`. If this statement contains a query, explain the query.", state = "0A000")
    found
  }

  /** The scan with which a DataSource V2 statement finds the files that the statement then replaces. */
  private def rewritten(session: Compat.Session, write: V2WriteCommand)(scans: Seq[PlannedScan]): Option[PlannedScan] =
    write match {
      case replace: ReplaceData =>
        val target = replace.originalTable.collectFirst(PlannedScan.table(session)).flatMap(_.catalogTable)
        scans.find(_.table == target.map(_.identifier)).filter(_.whole.isEmpty)
      case _ => None
    }

  private def changesRows(plan: LogicalPlan): Boolean = plan match {
    case _: DeleteFromTable | _: UpdateTable | _: MergeIntoTable => true
    case _ => false
  }

  private def queries(session: Compat.Session, statement: LogicalPlan): Seq[Read] = statement match {
    case named: UnresolvedWith =>
      queries(session, named.child).map(read => read.copy(query = named.withNewChildren(Seq(read.query))))
    case inserts: Union if inserts.children.forall(_.isInstanceOf[InsertIntoStatement]) =>
      inserts.children.flatMap(queries(session, _))
    case insert: InsertIntoStatement => Seq(Read(insert.query))
    case write: V2WriteCommand => Seq(Read(write.query))
    case create: V2CreateTableAsSelectPlan => Seq(Read(create.query))
    case directory: InsertIntoDir => Seq(Read(directory.child))
    case delete: DeleteFromTable =>
      Seq(Read(Filter(delete.condition, delete.table), filtered(session, delete, delete.table)))
    case update: UpdateTable =>
      Seq(Read(update.condition.fold(update.table)(Filter(_, update.table)), filtered(session, update, update.table)))
    case merge: MergeIntoTable =>
      Seq(Read(matches(session, merge), readAgain(session, merge, merge.targetTable)(_).lastOption))
    case _: Command | _: ParsedStatement => Nil
    // A block or EXECUTE IMMEDIATE has no queries to explain, because Spark would run the inner statements during
    // analysis.
    case _ if runsOthers.findFirstIn(statement.getClass.getSimpleName).isDefined => Nil
    case query => Seq(Read(query))
  }

  /**
   * The scan that finds rows to change. If the statement's condition uses only partition columns, no scan searches for
   * rows, and the result is None.
   */
  private def filtered(session: Compat.Session, statement: LogicalPlan, target: LogicalPlan)(
      scans: Seq[PlannedScan]): Option[PlannedScan] =
    readAgain(session, statement, target)(scans).headOption
      .filter(scan => Filters.evaluable(scan.dataFilters).exists(!TableFormat.addsFilter(_)))

  /**
   * Some statements first find the files with rows to change, and then read these files again. For such a statement,
   * returns the scans of the target table. For any other statement, returns no scans.
   */
  private def readAgain(session: Compat.Session, statement: LogicalPlan, target: LogicalPlan)(
      scans: Seq[PlannedScan]): Seq[PlannedScan] =
    relation(session, target).toSeq.flatMap { table =>
      table.relation match {
        case files: HadoopFsRelation if TableFormat.of(files).readsAgain(files, statement) =>
          scans.filter(_.table == table.catalogTable.map(_.identifier))
        case _ => Nil
      }
    }

  private def relation(session: Compat.Session, target: LogicalPlan): Option[LogicalRelation] =
    analysed(session, target).analyzed.collectFirst { case table: LogicalRelation => table }

  private val runsOthers = "ExecuteImmediate|CompoundBody".r

  private def analysed(session: Compat.Session, plan: LogicalPlan): QueryExecution =
    session.sessionState.executePlan(plan, CommandExecutionMode.SKIP)

  /** Returns the join that MERGE uses to find rows of the target. */
  private def matches(session: Compat.Session, merge: MergeIntoTable): LogicalPlan = {
    val source = ReadOnce(merge.sourceTable)
    val joinType =
      if (merge.notMatchedBySourceActions.nonEmpty) RightOuter else if (merge.matchedActions.isEmpty) LeftAnti else Inner
    val kind = relation(session, merge.targetTable).map(_.relation) match {
      case Some(files: HadoopFsRelation) => TableFormat.of(files).mergeJoin(files, joinType)
      case _ => Some(joinType)
    }
    kind.fold[LogicalPlan](source)(Join(source, merge.targetTable, _, Some(merge.mergeCondition), JoinHint.NONE))
  }
}
