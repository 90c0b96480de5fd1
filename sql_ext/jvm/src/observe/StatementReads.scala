package org.apache.spark.sql.sieve.observe

import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.{CommandExecutionMode, QueryExecution}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sieve.base.{Compat, SieveException}
import org.apache.spark.sql.sieve.formats.TableFormat
import org.apache.spark.sql.sieve.plan.ReadOnce

/**
 * Finds queries with the same scans as a statement. Spark plans the scans of many statements only while the
 * statement runs.
 */
object StatementReads {
  /**
   * Returns the queries by which a statement finds its rows. Fails if the queries are unknown until the statement
   * runs.
   */
  def of(session: Compat.Session, text: String): Seq[LogicalPlan] = {
    val statement = session.sessionState.sqlParser.parsePlan(text)
    val found = queries(session, statement)
    if (found.isEmpty) throw new SieveException(
      "SIEVE_UNSUPPORTED_STATEMENT",
      "EXPLAIN SIEVE shows the scans of a query, INSERT, CREATE TABLE AS SELECT, DELETE, UPDATE or MERGE, and cannot " +
        s"foretell those of `${text.trim.take(60)}`. Explain the query in it, if it has one.", state = "0A000")
    // Fails for statements that Spark rejects, such as an UPDATE of a table whose format cannot change rows.
    if (statement.exists(changesRows)) analysed(session, statement).executedPlan
    found
  }

  private def changesRows(plan: LogicalPlan): Boolean = plan match {
    case _: DeleteFromTable | _: UpdateTable | _: MergeIntoTable => true
    case _ => false
  }

  private def queries(session: Compat.Session, statement: LogicalPlan): Seq[LogicalPlan] = statement match {
    case named: UnresolvedWith => queries(session, named.child).map(query => named.withNewChildren(Seq(query)))
    case inserts: Union if inserts.children.forall(_.isInstanceOf[InsertIntoStatement]) =>
      inserts.children.flatMap(queries(session, _))
    case insert: InsertIntoStatement => Seq(insert.query)
    case write: V2WriteCommand => Seq(write.query)
    case create: V2CreateTableAsSelectPlan => Seq(create.query)
    case directory: InsertIntoDir => Seq(directory.child)
    case delete: DeleteFromTable => Seq(Filter(delete.condition, delete.table))
    case update: UpdateTable => Seq(update.condition.fold(update.table)(Filter(_, update.table)))
    case merge: MergeIntoTable => Seq(matches(session, merge))
    case _: Command | _: ParsedStatement => Nil
    // A block or EXECUTE IMMEDIATE has no queries here, because Spark runs its inner statements during the
    // analysis.
    case _ if runsOthers.findFirstIn(statement.getClass.getSimpleName).isDefined => Nil
    case query => Seq(query)
  }

  private val runsOthers = "ExecuteImmediate|CompoundBody".r

  private def analysed(session: Compat.Session, plan: LogicalPlan): QueryExecution =
    session.sessionState.executePlan(plan, CommandExecutionMode.SKIP)

  /** Returns the join by which MERGE finds rows of its target. */
  private def matches(session: Compat.Session, merge: MergeIntoTable): LogicalPlan = {
    val source = ReadOnce(merge.sourceTable)
    val joinType =
      if (merge.notMatchedBySourceActions.nonEmpty) RightOuter else if (merge.matchedActions.isEmpty) LeftAnti else Inner
    val kind = analysed(session, merge.targetTable).analyzed.collectFirst { case l: LogicalRelation => l.relation } match {
      case Some(files: HadoopFsRelation) => TableFormat.of(files).mergeJoin(files, joinType)
      case _ => Some(joinType)
    }
    kind.fold[LogicalPlan](source)(Join(source, merge.targetTable, _, Some(merge.mergeCondition), JoinHint.NONE))
  }
}
