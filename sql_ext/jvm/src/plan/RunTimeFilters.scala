package org.apache.spark.sql.sieve.plan

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.{ArrayData, TypeUtils}
import org.apache.spark.sql.execution.{ExecSubqueryExpression, FileSourceScanExec, InSubqueryExec, ScalarSubquery => ScalarResult}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sieve.ask.{Counters, Filters, FirstRows, MonotoneFunction, MonotoneSolver, Ordinals}
import org.apache.spark.sql.sieve.base.Reason.Reason
import org.apache.spark.sql.sieve.base.{Reason, Settings}
import org.apache.spark.sql.sieve.formats.TableFormat
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Filters whose values come while the query runs: a join's keys and results of scalar subqueries.
 * Spark waits for them before it executes the scan that has them.
 */
object RunTimeFilters {
  /** Both sides take too long for a longer list of keys, so ranges replace it. */
  val mostKeys = 10000
  val mostBytes = 500000L
  /** Each range is three nodes of a predicate, of which the front end reads 10,000. */
  private val mostRanges = 1000
  private val mostSolved = MonotoneSolver.mostValues

  /**
   * The filters of a scan with which its listing asks an index once their values have come: those of indexed columns.
   * With others an audit would look for fewer rows.
   */
  def awaited(scan: FileSourceScanExec): Seq[Expression] = scan.relation.location match {
    case index: SieveFileIndex if Settings.joinPruning(index.executing) =>
      val (indexed, stored) = (index.entry.columns.map(_.head), TableFormat.of(index.relation).stored(index.relation))
      scan.dataFilters.filter(f => awaits(f) && f.references.exists(a => indexed(stored(Seq(a.name)).head)))
    case _ => Nil
  }

  /** The data filters of a scan, those with values of subqueries that have come to an end. */
  def resolved(scan: CountedScan): Resolved = {
    if (scan.dataFilters.exists(Filters.isUnused)) Counters.refused(Reason.JoinNotRepeatable)
    scan.relation.location match {
      case index: SieveFileIndex
          if scan.dataFilters.exists(awaits) && Settings.joinPruning(index.executing) =>
        val (later, now) = scan.dataFilters.partition(awaits)
        val found = awaited(scan).flatMap(valued)
        if (found.nonEmpty) Counters.resolved(found.map(_.keys).sum)
        Resolved(
          now ++ found.map(f => DynamicPruningExpression(f.filter)) ++ withoutKeys(later), found.map(_.keys).sum,
          if (scan.lacksKeys) Some(Reason.KeysFailed) else if (found.exists(_.isOfMany)) Some(Reason.KeysTooMany) else None)
      case _ => Resolved(withoutKeys(scan.dataFilters), 0, None)
    }
  }

  /** Readers are given the results of a scan's subqueries, and fail where one has none. */
  def withoutKeys(filters: Seq[Expression]): Seq[Expression] = filters.filterNot(_.isInstanceOf[AmongKeys])

  /** What a filter asks of a row now that its values are there; None while they are not. */
  private def valued(filter: Expression): Option[Valued] = filter match {
    case DynamicPruningExpression(in: InSubqueryExec) =>
      Try(in.values().map(oneOf(in.child, _))).toOption.flatten
    case DynamicPruningExpression(_) => None
    case AmongKeys(key, keys) => Try(Option(keys.eval()).map { found =>
      among(key, DistinctKeys.ranges(found.asInstanceOf[ArrayData], key.dataType))
    }).toOption.flatten
    case _ => Try(filter.transform {
      case s: ScalarResult => Literal.create(s.eval(), s.dataType)
    }).toOption.filterNot(awaits).map(Valued(_, 1, isOfMany = false))
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
    case node => node.expressions.exists(e => !TableFormat.withoutCounters(e).deterministic || e.exists {
      case s: SubqueryExpression => !isRepeatable(s.plan)
      case _ => false
    })
  }

  /**
   * `key IN values`, or of many values ranges that hold them all. NULL is equal to nothing.
   *
   * @param values internal values of the key's type, in any order
   */
  def oneOf(key: Expression, values: Array[Any]): Valued =
    among(key, Ranges.distinct(values.filter(_ != null), key.dataType))

  /**
   * `key IN values`, where the values lie in ranges.
   *
   * @param ranges each from a value to a value, sorted, without overlaps
   */
  def among(key: Expression, ranges: IndexedSeq[(Any, Any)]): Valued = {
    val (column, own) = narrowed(key, ranges)
    val order = TypeUtils.getInterpretedOrdering(column.dataType)
    val isBare = MonotoneFunction.of(column).isEmpty
    def literal(v: Any): Literal = Literal.create(v, column.dataType)
    def isList = own.forall { case (first, last) => order.equiv(first, last) }
    val filter =
      if (own.isEmpty) Some(Literal.FalseLiteral)
      else if (!isBare && own.size <= mostSolved && isList) Some(In(column, own.map(r => literal(r._1))))
      else if (isBare && own.size <= mostKeys && isList && own.map(r => bytes(r._1)).sum <= mostBytes) {
        Some(InSet(column, own.map(_._1).toSet))
      } else None
    Valued(filter.getOrElse(either(
      Ranges.over(own, column.dataType, if (isBare) mostRanges else mostSolved).map {
        case (first, last) =>
          And(GreaterThanOrEqual(column, literal(first)), LessThanOrEqual(column, literal(last)))
      })), ranges.size, filter.isEmpty)
  }

  /** Bytes of a value of varying length; 0 for any other. */
  def bytes(value: Any): Long = value match {
    case text: UTF8String => text.numBytes.toLong
    case binary: Array[Byte] => binary.length.toLong
    case _ => 0L
  }

  /** Of a column that a join widens to the other side's integers: it, and values it can have. */
  private def narrowed(
      key: Expression, ranges: IndexedSeq[(Any, Any)]): (Expression, IndexedSeq[(Any, Any)]) = key match {
    case Cast(child, to: IntegralType, _, _) if isNarrower(child.dataType, to) =>
      val own = Ordinals.of(child.dataType).get
      def number(value: Any) = BigInt(value.asInstanceOf[Number].longValue)
      narrowed(child, ranges.collect {
        case (first, last) if number(last) >= own.low && number(first) <= own.high =>
          (own.value(number(first).max(own.low)), own.value(number(last).min(own.high)))
      })
    case _ => (key, ranges)
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

/**
 * A scan's filters once values have come.
 *
 * @param keys   how many values, or ranges of values, have come
 * @param reason why more may be read than the keys of joins ask for
 */
final case class Resolved(filters: Seq[Expression], keys: Long, reason: Option[Reason])

/** A filter with its values, how many there are, and whether these are more than are looked up one by one. */
final case class Valued(filter: Expression, keys: Long, isOfMany: Boolean)
