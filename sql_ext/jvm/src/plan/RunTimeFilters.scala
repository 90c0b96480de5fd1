package org.apache.spark.sql.sieve.plan

import scala.util.Try

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.execution.{ExecSubqueryExpression, FileSourceScanExec, InSubqueryExec, ScalarSubquery => ScalarResult}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sieve.ask.Counters
import org.apache.spark.sql.sieve.predicate.{AmongPackedKeys, Filters, MonotoneFunction, MonotoneSolver, NumberedValues, PackedKeys, TopK}
import org.apache.spark.sql.sieve.base.Reason.Reason
import org.apache.spark.sql.sieve.base.{Reason, Settings}
import org.apache.spark.sql.sieve.formats.TableFormat
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Filters with values that become known while a query runs: keys of a join, and results of scalar subqueries. Spark
 * waits for these values before it executes the scan.
 */
object RunTimeFilters {
  /**
   * The maximum number of keys in a filter. Ranges replace a longer list, because the driver and the front end would
   * take too long to process the list.
   */
  val mostKeys = 10000
  val mostBytes = 500000L
  /**
   * The maximum number of packed keys in a filter. The driver stores 8 bytes for each key, and the request to the front
   * end has 11 bytes for each key.
   */
  val mostPacked = 1000000
  /**
   * The minimum size of a table, in bytes per key, for a filter with packed keys. Collecting, sending and looking up a
   * key takes about a microsecond. Two cores read 4,096 bytes in about twenty microseconds.
   */
  private val bytesOfPackedKey = 4096
  /**
   * The maximum number of ranges in a filter. Each range needs three nodes of the predicate tree, and the front end
   * accepts at most 10,000 nodes.
   */
  private val mostRanges = 1000
  private val mostSolved = MonotoneSolver.mostValues

  /**
   * The run-time filters of a scan that use indexed columns. Filters on other columns are left out, because an audit
   * would otherwise search for fewer rows.
   */
  def awaited(scan: FileSourceScanExec): Seq[Expression] = scan.relation.location match {
    case index: SieveFileIndex => awaited(index, scan.dataFilters)
    case _ => Nil
  }

  def awaited(index: SieveFileIndex, filters: Seq[Expression]): Seq[Expression] =
    if (!Settings.joinPruning(index.executing)) Nil
    else filters.map(KeysOfExpression.without).filter(f => awaits(f) && index.indexed.occurIn(f))

  /** The data filters of a scan, with the results of subqueries in place of the subqueries. */
  def resolved(scan: CountedScan): Resolved = {
    if (scan.dataFilters.exists(Filters.isUnused)) Counters.refused(Reason.JoinNotRepeatable)
    scan.relation.location match {
      case index: SieveFileIndex
          if scan.dataFilters.exists(awaits) && Settings.joinPruning(index.executing) =>
        val (later, now) = scan.dataFilters.partition(awaits)
        val found = values(index, scan.dataFilters)
        if (found.nonEmpty) Counters.resolved(found.map(_.keys).sum)
        Resolved(
          now ++ found.map(f => DynamicPruningExpression(f.filter)) ++ withoutKeys(later), found.map(_.keys).sum,
          if (scan.lacksKeys) Some(Reason.KeysFailed) else if (found.exists(_.isOfMany)) Some(Reason.KeysTooMany) else None)
      case _ => Resolved(withoutKeys(scan.dataFilters), 0, None)
    }
  }

  /**
   * Removes each filter with keys that a separate job reads. Readers need the results of all subqueries in their
   * filters, and fail if a result is missing.
   */
  def withoutKeys(filters: Seq[Expression]): Seq[Expression] = filters.filterNot(_.isInstanceOf[AmongKeys])

  /** The run-time filters of a scan that use indexed columns, with the values that have arrived so far. */
  def values(index: SieveFileIndex, filters: Seq[Expression]): Seq[Valued] =
    awaited(index, filters).flatMap(valued(_, packable(index)))

  /** The maximum number of packed keys in a filter of this table. */
  def packable(index: SieveFileIndex): Int =
    if (Settings.joinAlways(index.executing)) mostPacked
    // For a partitioned table of unknown size, Spark assumes the size `defaultSizeInBytes`.
    else if (index.sizeInBytes >= index.executing.sessionState.conf.defaultSizeInBytes) 0
    else math.min(mostPacked, index.sizeInBytes / bytesOfPackedKey).toInt

  /** A filter with its run-time values. Returns None until the values have arrived. */
  private def valued(filter: Expression, packable: Int): Option[Valued] = filter match {
    case DynamicPruningExpression(in: InSubqueryExec) =>
      Try(in.values().map { values =>
        oneOf(BroadcastTuple.without(in.child), in.child match {
          case tuple: BroadcastTuple => BroadcastTuple.values(tuple, in.plan)
          case _ => values
        }, packable)
      }).toOption.flatten
    case DynamicPruningExpression(_) => None
    case AmongKeys(key, keys) => Try(Option(keys.eval()).map { found =>
      val buffer = DistinctKeys.buffer(found.asInstanceOf[InternalRow], key.dataType)
      buffer.packed.filter(keys => mostKeys < keys.length && keys.length <= packable)
        .flatMap(keys => amongPacked(key, new PackedKeys(keys), buffer.ranges)).getOrElse(among(key, buffer.ranges))
    }).toOption.flatten
    case _ => Try(filter.transform {
      case s: ScalarResult => Literal.create(s.eval(), s.dataType)
    }).toOption.filterNot(awaits).map(Valued(_, 1, isOfMany = false))
  }

  /** True if a filter contains a subquery, whose result becomes known only at run time. */
  def awaits(filter: Expression): Boolean = filter.exists {
    case _: ExecSubqueryExpression | _: SubqueryExpression => true
    case _ => false
  }

  /**
   * True if a filter compares columns of files with a scalar subquery's result. Spark 3.5 does not add filters of this
   * kind to scans.
   */
  def ofResults(filter: Expression, scan: LogicalRelation): Boolean = scan.relation match {
    case fs: HadoopFsRelation =>
      // A Bloom filter is excluded, because it contains no values that an index could look up.
      filter.deterministic && !filter.exists(_.isInstanceOf[BloomFilterMightContain]) &&
        filter.exists(_.isInstanceOf[ScalarSubquery]) &&
        filter.references.forall(a => !fs.partitionSchema.fieldNames.contains(a.name))
    case _ => false
  }

  /**
   * True if only the listing of an indexed table may receive the filter. The filter then has run-time values, or is a
   * top-k condition, which does not filter rows.
   */
  def isOwn(filter: Expression): Boolean =
    filter.isInstanceOf[DynamicPruningExpression] || filter.isInstanceOf[TopK] || awaits(filter)

  /**
   * Removes the normalization of floats from a key. An index needs no normalization, because joins and indexes compare
   * floats in the same way.
   */
  def withoutNormalization(key: Expression): Expression = key match {
    case KnownFloatingPointNormalized(NormalizeNaNAndZero(plain)) => plain
    case _ => key
  }

  /** True if a plan returns the same rows in each run. */
  def isRepeatable(plan: LogicalPlan): Boolean = !plan.isStreaming && !plan.exists {
    case _: GlobalLimit | _: LocalLimit | _: Tail | _: Offset | _: Sample | _: CTERelationRef => true
    case node => node.expressions.exists(e => !TableFormat.withoutCounters(e).deterministic || e.exists {
      case s: SubqueryExpression => !isRepeatable(s.plan)
      case _ => false
    })
  }

  /**
   * Creates the filter `key IN values`. A filter with many values contains ranges of values instead of a list. NULL is
   * left out, because NULL equals nothing.
   *
   * @param values   internal values of the key's type, in any order
   * @param packable the maximum number of packed keys in the filter
   */
  def oneOf(key: Expression, values: Array[Any], packable: Int = 0): Valued = {
    val present = values.filter(_ != null)
    val isPacked = mostKeys < present.length && present.length <= packable && PackedKeys.support(key.dataType)
    def packed = PackedKeys.pack(present, key.dataType)
    def ranges = ValueRanges.distinct(present, key.dataType)
    (if (isPacked) amongPacked(key, packed, ranges) else None).getOrElse(among(key, ranges))
  }

  /** Creates the filter `key IN values` with one arbitrary value of the key's type. */
  def example(key: Expression): Expression =
    oneOf(key, Array(Try(Literal.default(key.dataType).value).getOrElse(null))).filter

  /**
   * Creates the filter `key IN values` from ranges of values.
   *
   * @param ranges sorted ranges without overlaps; each has a first and a last value
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
      ValueRanges.over(own, column.dataType, if (isBare) mostRanges else mostSolved).map {
        case (first, last) =>
          And(GreaterThanOrEqual(column, literal(first)), LessThanOrEqual(column, literal(last)))
      })), ranges.size, filter.isEmpty)
  }

  /**
   * Creates the filter `key IN packed`. Returns None if equal values of the indexed column and of `key` can have
   * different packed keys. A hash says nothing about the order of values, so a filter with hashes also has ranges. An
   * audit evaluates the hashes first, so that few rows of skipped files reach the slower comparison with all ranges.
   */
  private def amongPacked(key: Expression, packed: PackedKeys, ranges: => IndexedSeq[(Any, Any)]): Option[Valued] = {
    val (column, _) = narrowed(key, IndexedSeq.empty)
    if (MonotoneFunction.of(column).nonEmpty || !isSameKey(column.dataType, key.dataType)) None
    else {
      val own = AmongPackedKeys(column, packed.within(column.dataType))
      val filter = if (PackedKeys.isHashed(column.dataType)) And(own, among(key, ranges).filter) else own
      Some(Valued(filter, packed.size, isOfMany = false))
    }
  }

  /** True if equal values of the two types have equal packed keys. */
  private def isSameKey(of: DataType, other: DataType): Boolean = (of, other) match {
    case (_: IntegralType, _: IntegralType) => true
    case _ => of == other
  }

  /** The size in bytes of a value of variable length; 0 for a value of fixed length. */
  def bytes(value: Any): Long = value match {
    case text: UTF8String => text.numBytes.toLong
    case binary: Array[Byte] => binary.length.toLong
    case _ => 0L
  }

  /**
   * Removes a widening cast from a join key. Returns the column below the cast, and the ranges restricted to values of
   * the column's type.
   */
  private def narrowed(
      key: Expression, ranges: IndexedSeq[(Any, Any)]): (Expression, IndexedSeq[(Any, Any)]) = key match {
    case Cast(child, to: IntegralType, _, _) if isNarrower(child.dataType, to) =>
      val own = NumberedValues.of(child.dataType).get
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

  /** Combines conditions in a balanced tree of ORs, because Spark visits expressions recursively. */
  private def either(parts: Seq[Expression]): Expression =
    if (parts.size == 1) parts.head
    else { val (a, b) = parts.splitAt(parts.size / 2); Or(either(a), either(b)) }
}

/**
 * A scan's filters with their run-time values.
 *
 * @param keys   the number of values, or of ranges of values
 * @param reason the reason why the scan might also read files without any of the values
 */
final case class Resolved(filters: Seq[Expression], keys: Long, reason: Option[Reason])

/**
 * A filter with run-time values. `keys` is the number of values. `isOfMany` is true if the filter contains ranges
 * instead of single values, because there are too many values.
 */
final case class Valued(filter: Expression, keys: Long, isOfMany: Boolean)
