package org.apache.spark.sql.sieve.ask

import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.types.{BooleanType, DataType}

/**
 * What a query wants of a scan beside its filters: the first rows in some orders. It stands among the
 * scan's data filters, and so is part of what makes scans equal: exchanges are shared by scans with the
 * same bounds alone. No row is asked for it; only an index's own listing sees it.
 *
 * @param orders     columns of the relation; a row is wanted if it is among the first in any of them
 * @param rows       how many rows are wanted in each order
 * @param isOfValues whether the least values are wanted, which no NULL is, and not their rows: MIN and MAX
 * @param groups     partition columns: so many rows are wanted of each group of their values
 */
case class FirstRows(orders: Seq[SortOrder], rows: Long, isOfValues: Boolean, groups: Seq[Expression])
    extends Expression with Unevaluable {
  override def children: Seq[Expression] = orders ++ groups
  override def dataType: DataType = BooleanType
  override def nullable: Boolean = false
  override protected def withNewChildrenInternal(made: IndexedSeq[Expression]): FirstRows = {
    val (first, second) = made.splitAt(orders.size)
    copy(orders = first.collect { case order: SortOrder => order }, groups = second)
  }

  /** As the query says it. */
  override def sql: String =
    if (isOfValues) orders.map { o =>
      s"${if (o.direction == Descending) "MAX" else "MIN"}(${o.child.sql})"
    }.mkString(", ") + (if (groups.isEmpty) "" else groups.map(_.sql).mkString(" GROUP BY ", ", ", ""))
    else s"ORDER BY ${orders.map(_.sql).mkString(", ")} LIMIT $rows"
  override def toString: String = sql
}

object FirstRows {
  def in(filters: Seq[Expression]): Option[FirstRows] = filters.collectFirst { case own: FirstRows => own }

  def without(filters: Seq[Expression]): Seq[Expression] = filters.filterNot(_.isInstanceOf[FirstRows])

  /** Whether readers may leave out rows that files hold, by an option or by what the session says now. */
  def mayBeMissing(relation: HadoopFsRelation): Boolean = {
    val options = new FileSourceOptions(CaseInsensitiveMap(relation.options))
    options.ignoreCorruptFiles || options.ignoreMissingFiles
  }
}
