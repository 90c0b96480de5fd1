package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.sieve.predicate.Tuple
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.sieve.formats.TableFormat

/**
 * One side of a join, whose keys can select rows of the other side.
 *
 * @param side     the build side, which supplies the keys
 * @param pairs    each key of the probe side with the corresponding key of the build side
 * @param tuples   for each tuple of keys that has an index, the positions of its keys in `pairs`
 * @param isShared true if Spark broadcasts the build side; the keys then need no extra work, and no exchange is between
 *                 the join and the probe side
 */
final case class KeySource(
    side: BuildSide, probe: LogicalPlan, build: LogicalPlan, pairs: Seq[(Expression, Expression)],
    isShared: Boolean, tuples: Seq[Seq[Int]] = Nil) {
  /**
   * The keys that can select rows: each single key, and the hash of each tuple of keys that has an index. A single key
   * that is a struct does not count as a tuple, because structs with NULL in a field can be equal.
   */
  lazy val keys: Seq[Expression] = places.map(together(_, pairs.map(_._1)))
  private def places = pairs.indices.map(Seq(_)) ++ tuples
  private def together(places: Seq[Int], all: Seq[Expression]): Expression =
    if (places.size == 1) all(places.head) else Tuple.key(CreateStruct.create(places.map(all)))

  /**
   * The plan with which a job reads the build side a second time. The plan lacks the functions that count rows for a
   * command's metrics.
   */
  lazy val uncounted: LogicalPlan =
    build.transform { case node => node.mapExpressions(TableFormat.withoutCounters) }

  /**
   * A subquery that collects the keys. All scans that the keys prune share this subquery. In the subquery, dynamic
   * partition pruning uses only broadcasts, because a nested subquery would need a second thread of Spark's pool.
   */
  lazy val collected: ScalarSubquery = DistinctKeys.of(uncounted.transformAllExpressions {
    case partitions: DynamicPruningSubquery if !partitions.onlyInBroadcast => Literal.TrueLiteral
  }, places.map(together(_, pairs.map(_._2))))

  /** Creates a filter that restricts a scan to the values of the key at position `at` of `keys`. */
  def filter(key: Expression, at: Int): Expression =
    if (isShared) {
      val own = if (places(at).size == 1) key else BroadcastTuple(Tuple.hashed(key), places(at))
      Compat.pruning(own, build, pairs.map(_._2), places(at).head)
    } else AmongKeys(key, GetStructField(collected, at))
}
