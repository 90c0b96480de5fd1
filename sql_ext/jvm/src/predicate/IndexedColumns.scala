package org.apache.spark.sql.sieve.predicate

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.sieve.catalog.Entry
import org.apache.spark.sql.sieve.formats.TableFormat

/** The columns and expressions of a scan that have an index. */
final class IndexedColumns(scan: LogicalRelation, relation: HadoopFsRelation, entry: Entry, session: Compat.Session) {
  private val stored = TableFormat.of(relation).stored(relation)
  private val partitions = relation.partitionSchema.fieldNames.toSet
  private lazy val names = scan.output.map(a => a.exprId -> a.name).toMap
  private lazy val indexed = entry.columns.map(_.head)
  lazy val expressions: IndexedExpressions =
    IndexedExpressions.of(entry.columns, TableFormat.filesColumns(scan), stored, session)

  /** True if an expression has an index. */
  def holds(e: Expression): Boolean =
    path(e).exists(own => entry.columns.contains(stored(own))) || expressions.key(e, path).nonEmpty

  /** True if an expression has an index, or is a monotone function of an indexed expression. */
  def contains(e: Expression): Boolean = holds(e) || MonotoneFunction.of(e).exists(f => contains(f.argument))

  /**
   * For each indexed tuple, the positions of its columns in `all`. Tuples with a column that is not in `all` are left
   * out.
   */
  def tuplesAmong(all: Seq[Expression]): Seq[Seq[Int]] =
    expressions.tuples.map(_.columns.map(c => all.indexWhere(path(_).contains(c.path)))).filterNot(_.contains(-1))

  /**
   * True if a filter contains an indexed column or a column of an indexed expression. An index might then evaluate a
   * part of the filter.
   */
  def occurIn(filter: Expression): Boolean = {
    // In an Iceberg table, the key of a field does not contain the key of the field's struct.
    def isIndexed(path: Seq[String]) = entry.columns.contains(stored(path)) || indexed(stored(path.take(1)).head)
    filter.exists(path(_).exists(isIndexed)) || expressions.over(filter.references.toSeq.map(_.name)).nonEmpty
  }

  private def path(e: Expression): Option[Seq[String]] = ColumnPath.of(e, a => names.get(a.exprId).filterNot(partitions))
}
