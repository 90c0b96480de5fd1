package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types._

/** Operations on sorted ranges of values. The ranges do not overlap, and each range has a first and a last value. */
object ValueRanges {
  /** Returns the distinct values of an array without NULLs, each as a range of one value. */
  def distinct(values: Array[Any], t: DataType): IndexedSeq[(Any, Any)] = {
    val order = TypeUtils.getInterpretedOrdering(t)
    val sorted = t match {
      // Integers and timestamps are sorted as numbers, because sorting a million values with an interpreted ordering
      // takes seconds.
      case LongType | TimestampType | TimestampNTZType => longs(values).map(v => v: Any)
      case IntegerType | DateType => longs(values).map(v => v.toInt: Any)
      case _ => values.sorted(order)
    }
    sorted.indices.collect {
      case i if i == 0 || !order.equiv(sorted(i - 1), sorted(i)) => (sorted(i), sorted(i))
    }
  }

  /**
   * Returns ranges that contain all these numbers. The number of ranges is at most `RunTimeFilters.mostKeys`.
   *
   * @param sorted the packed keys of values of type `t`, in ascending order
   */
  def ofNumbers(sorted: Array[Long], t: DataType): IndexedSeq[(Any, Any)] = {
    def value(key: Long): Any = t match {
      case ByteType => key.toByte
      case ShortType => key.toShort
      case IntegerType | DateType => key.toInt
      case _ => key
    }
    val most = RunTimeFilters.mostKeys
    val cuts =
      if (sorted.length <= most) 1 until sorted.length
      else widest(Array.tabulate(sorted.length - 1)(i => sorted(i + 1).toDouble - sorted(i).toDouble), most - 1).map(_ + 1)
    (0 +: cuts).zip(cuts :+ sorted.length).map { case (from, to) => (value(sorted(from)), value(sorted(to - 1))) }
  }

  private def longs(values: Array[Any]): Array[Long] = {
    val own = values.map(_.asInstanceOf[Number].longValue)
    java.util.Arrays.sort(own)
    own
  }

  /** Returns the union of ranges that are sorted by their first values. Merges overlapping ranges. */
  def union(sorted: Seq[(Any, Any)], order: Ordering[Any]): IndexedSeq[(Any, Any)] = {
    val made = IndexedSeq.newBuilder[(Any, Any)]
    var open = Option.empty[(Any, Any)]
    for ((first, last) <- sorted) open = Some(open match {
      case Some((from, to)) if order.lteq(first, to) => (from, order.max(to, last))
      case before =>
        made ++= before
        (first, last)
    })
    (made ++= open).result()
  }

  /** Merges ranges until their number and the total size of their values are within the limits in `RunTimeFilters`. */
  def bounded(sorted: IndexedSeq[(Any, Any)], t: DataType): IndexedSeq[(Any, Any)] = {
    val most = RunTimeFilters.mostKeys
    val bytes = sorted.map { case (first, last) => RunTimeFilters.bytes(first).max(RunTimeFilters.bytes(last)) }.sum
    val fitting = if (bytes > RunTimeFilters.mostBytes) sorted.size * RunTimeFilters.mostBytes / bytes else most
    over(sorted, t, math.max(1, math.min(most, fitting.toInt)))
  }

  /**
   * Returns at most `most` ranges that contain all given ranges. For numbers, dates and timestamps, the new ranges
   * leave out the widest gaps. For other types, all new ranges contain about the same number of given ranges.
   */
  def over(sorted: IndexedSeq[(Any, Any)], t: DataType, most: Int): IndexedSeq[(Any, Any)] =
    if (sorted.size <= most) sorted
    else {
      val cuts = t match {
        case _: NumericType | DateType | TimestampType | TimestampNTZType =>
          widest(Array.tabulate(sorted.size - 1)(i => position(sorted(i + 1)._1) - position(sorted(i)._2)), most - 1)
            .map(_ + 1)
        case _ => (1 until most).map(k => (k.toLong * sorted.size / most).toInt)
      }
      (0 +: cuts).zip(cuts :+ sorted.size).map { case (from, to) => (sorted(from)._1, sorted(to - 1)._2) }
    }

  /** The positions of the widest gaps, in ascending order. The result has `most` positions. */
  private def widest(gaps: Array[Double], most: Int): IndexedSeq[Int] =
    if (most == 0) IndexedSeq.empty
    else {
      val sorted = gaps.clone
      java.util.Arrays.sort(sorted)
      val least = sorted(sorted.length - most)
      val wider = gaps.indices.filter(gaps(_) > least)
      (wider ++ gaps.indices.filter(gaps(_) == least).take(most - wider.size)).sorted
    }

  // Converts a number or time to a double, so that `widest` can compare gaps. If rounding hides a gap, `widest` chooses
  // another gap, which is harmless. NaN and the infinities become the greatest finite doubles.
  private def position(value: Any): Double = (value match {
    case d: Decimal => d.toDouble
    case n: Number => n.doubleValue
  }) match {
    case x if x.isNaN => Double.MaxValue
    case x => math.max(-Double.MaxValue, math.min(x, Double.MaxValue))
  }
}
