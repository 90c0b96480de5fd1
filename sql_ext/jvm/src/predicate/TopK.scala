package org.apache.spark.sql.sieve.predicate

import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.types.{BooleanType, DataType}

/**
 * States that a query needs only the first rows of a scan in one or several sort orders. This expression is one of the
 * scan's data filters, so that Spark shares an exchange only between scans with equal top-k conditions. Spark never
 * evaluates this expression on rows; only the listing of an indexed table uses it.
 *
 * @param orders     sort orders of columns; the query needs a row if it is among the first rows in at least one order
 * @param rows       the number of rows that the query needs in each order
 * @param isOfValues whether the query computes a MIN or MAX, which ignores NULL and needs values instead of rows
 * @param groups     partition columns; the query needs `rows` rows for each combination of their values
 */
case class TopK(orders: Seq[SortOrder], rows: Long, isOfValues: Boolean, groups: Seq[Expression])
    extends Expression with Unevaluable {
  override def children: Seq[Expression] = orders ++ groups
  override def dataType: DataType = BooleanType
  override def nullable: Boolean = false
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): TopK = {
    val (first, second) = newChildren.splitAt(orders.size)
    copy(orders = first.collect { case order: SortOrder => order }, groups = second)
  }

  /** The expression as text, in the SQL syntax of the query. */
  override def sql: String =
    if (isOfValues) orders.map { o =>
      s"${if (o.direction == Descending) "MAX" else "MIN"}(${o.child.sql})"
    }.mkString(", ") + (if (groups.isEmpty) "" else groups.map(_.sql).mkString(" GROUP BY ", ", ", ""))
    else s"ORDER BY ${orders.map(_.sql).mkString(", ")} LIMIT $rows"
  override def toString: String = sql
}

object TopK {
  def in(filters: Seq[Expression]): Option[TopK] = filters.collectFirst { case own: TopK => own }

  def without(filters: Seq[Expression]): Seq[Expression] = filters.filterNot(_.isInstanceOf[TopK])

  /** True if an option of the relation or a setting of the session allows readers to leave out rows of files. */
  def mayBeMissing(relation: HadoopFsRelation): Boolean = {
    val options = new FileSourceOptions(CaseInsensitiveMap(relation.options))
    options.ignoreCorruptFiles || options.ignoreMissingFiles
  }
}
