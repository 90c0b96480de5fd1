package org.apache.spark.sql.sieve

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.execution.{ExecSubqueryExpression, InSubqueryExec, ScalarSubquery => ScalarResult}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Filters whose values come while the query runs: a join's keys and results of scalar subqueries.
 * Spark waits for them before it executes the scan that has them.
 */
object RunTimeFilters {
  private val mostKeys = Policy.limit("run_time_keys")
  private val mostBytes = Policy.limit("run_time_key_bytes")
  private val mostRanges = Policy.limit("run_time_ranges").toInt
  private val mostSolved = Policy.limit("values_solved").toInt

  /** The data filters of a scan, those with values of subqueries that have come to an end. */
  def resolved(scan: CountedScan): Seq[Expression] = scan.relation.location match {
    case index: SieveFileIndex
        if scan.dataFilters.exists(awaits) && Settings.joinPruning(index.executing) =>
      val (later, now) = scan.dataFilters.partition(awaits)
      // Of other columns no index can say anything, and an audit would ask for fewer rows with them.
      val (indexed, stored) = (index.entry.columns.map(_.head), DeltaColumns.stored(index.relation))
      val found = later.filter(_.references.exists(a => indexed(stored(Seq(a.name)).head))).flatMap(valued)
      if (found.nonEmpty) Counters.resolved()
      now ++ found.map(DynamicPruningExpression(_)) ++ later
    case _ => scan.dataFilters
  }

  /** What a filter asks of a row now that its values are there; None while they are not. */
  private def valued(filter: Expression): Option[Expression] = filter match {
    case DynamicPruningExpression(in: InSubqueryExec) =>
      Try(in.values().map(oneOf(in.child, _))).toOption.flatten
    case DynamicPruningExpression(_) => None
    case _ => Try(filter.transform {
      case s: ScalarResult => Literal.create(s.eval(), s.dataType)
    }).toOption.filterNot(awaits)
  }

  /** Whether a filter gets values while the query runs. */
  def awaits(filter: Expression): Boolean = filter.exists {
    case _: ExecSubqueryExpression | _: SubqueryExpression => true
    case _ => false
  }

  /** Whether a filter compares columns of files with a subquery's result. Spark 3.5 keeps it from scans. */
  def ofResults(filter: Expression, scan: LogicalRelation): Boolean = scan.relation match {
    case fs: HadoopFsRelation =>
      // Of a Bloom filter no value can be looked up.
      filter.deterministic && !filter.exists(_.isInstanceOf[BloomFilterMightContain]) &&
        filter.exists(_.isInstanceOf[ScalarSubquery]) &&
        filter.references.forall(a => !fs.partitionSchema.fieldNames.contains(a.name))
    case _ => false
  }

  /** What only a running query asks, or only the plan says: no listing but an index's own is to see it. */
  def isOwn(filter: Expression): Boolean =
    filter.isInstanceOf[DynamicPruningExpression] || filter.isInstanceOf[FirstRows] || awaits(filter)

  /** A filter that Spark has found to have no use: the keys would have to be computed for it alone. */
  def isUnused(filter: Expression): Boolean =
    filter == DynamicPruningExpression(Literal.TrueLiteral)

  /** Floats as joins compare them are floats as indexes compare them. */
  def withoutNormalization(key: Expression): Expression = key match {
    case KnownFloatingPointNormalized(NormalizeNaNAndZero(plain)) => plain
    case _ => key
  }

  /** The path of the column that an expression is, or is a monotone function of. */
  def column(e: Expression, output: Seq[Attribute]): Option[Seq[String]] = e match {
    case a: Attribute => output.find(_.exprId == a.exprId).map(found => Seq(found.name))
    case g: GetStructField => column(g.child, output).map(_ :+ g.childSchema(g.ordinal).name)
    case _ => MonotoneFunction.of(e).flatMap(f => column(f.argument, output))
  }

  /** Whether a plan gives the same rows each time, should Spark run it twice. */
  def isRepeatable(plan: LogicalPlan): Boolean = !plan.isStreaming && !plan.exists {
    case _: GlobalLimit | _: LocalLimit | _: Tail | _: Offset | _: Sample | _: CTERelationRef => true
    case node => node.expressions.exists(e => !Delta.withoutCounters(e).deterministic || e.exists {
      case s: SubqueryExpression => !isRepeatable(s.plan)
      case _ => false
    })
  }

  /**
   * `key IN values`, or of many values ranges that hold them all. NULL is equal to nothing.
   *
   * @param values internal values of the key's type, in any order
   */
  def oneOf(key: Expression, values: Array[Any]): Expression = {
    val (column, wanted) = narrowed(key, values.filter(_ != null))
    val order = TypeUtils.getInterpretedOrdering(column.dataType)
    val sorted = wanted.sorted(order)
    val distinct = sorted.indices.collect {
      case i if i == 0 || order.compare(sorted(i - 1), sorted(i)) != 0 => sorted(i)
    }
    val isBare = MonotoneFunction.of(column).isEmpty
    def literal(v: Any): Literal = Literal.create(v, column.dataType)
    if (distinct.isEmpty) Literal.FalseLiteral
    else if (!isBare && distinct.size <= mostSolved) In(column, distinct.map(literal))
    else if (isBare && distinct.size <= mostKeys && bytes(distinct) <= mostBytes) {
      InSet(column, distinct.toSet)
    }
    else either(Ranges.over(distinct, column.dataType, if (isBare) mostRanges else mostSolved).map {
      case (first, last) =>
        And(GreaterThanOrEqual(column, literal(first)), LessThanOrEqual(column, literal(last)))
    })
  }

  private def bytes(values: Seq[Any]): Long = values.map {
    case text: UTF8String => text.numBytes.toLong
    case binary: Array[Byte] => binary.length.toLong
    case _ => 0L
  }.sum

  /** Of a column that a join widens to the other side's integers: it, and values it can have. */
  private def narrowed(key: Expression, values: Array[Any]): (Expression, Array[Any]) = key match {
    case Cast(child, to: IntegralType, _, _) if isNarrower(child.dataType, to) =>
      val own = Ordinals.of(child.dataType).get
      val numbers = values.map { case n: Number => BigInt(n.longValue) }
      narrowed(child, numbers.filter(n => n >= own.low && n <= own.high).map(own.value))
    case _ => (key, values)
  }
  private def isNarrower(from: DataType, to: IntegralType): Boolean = from match {
    case integers: IntegralType => integers.defaultSize < to.defaultSize
    case _ => false
  }

  /** A balanced tree: Spark walks expressions by recursion. */
  private def either(parts: Seq[Expression]): Expression =
    if (parts.size == 1) parts.head
    else { val (a, b) = parts.splitAt(parts.size / 2); Or(either(a), either(b)) }
}

/** Ranges that hold sorted values. */
object Ranges {
  /**
   * At most `most` ranges, each from a value to a value, that hold all of them: numbers are cut at
   * the widest gaps between them, others into ranges of as many values.
   */
  def over(sorted: IndexedSeq[Any], t: DataType, most: Int): Seq[(Any, Any)] = {
    val cuts =
      if (sorted.size <= most) 1 until sorted.size
      else t match {
        case _: NumericType | DateType | TimestampType | TimestampNTZType =>
          val at = sorted.map(position)
          (1 until sorted.size).sortBy(i => at(i - 1) - at(i)).take(most - 1).sorted
        case _ => (1 until most).map(k => (k.toLong * sorted.size / most).toInt)
      }
    (0 +: cuts).zip(cuts :+ sorted.size).map { case (from, to) => (sorted(from), sorted(to - 1)) }
  }

  // A gap that is lost in rounding is cut elsewhere, which no range gets wrong by. NaN and the
  // infinities come to lie at the ends.
  private def position(value: Any): Double = (value match {
    case d: Decimal => d.toDouble
    case n: Number => n.doubleValue
  }) match {
    case x if x.isNaN => Double.MaxValue
    case x => math.max(-Double.MaxValue, math.min(x, Double.MaxValue))
  }
}
