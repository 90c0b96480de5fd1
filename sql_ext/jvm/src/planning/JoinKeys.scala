package org.apache.spark.sql.sieve

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.DYNAMIC_PRUNING_SUBQUERY
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/** A join that prunes: `pairs` are keys of the probe side, each with that of the build side. */
final case class KeyedSides(
    side: BuildSide, probe: LogicalPlan, build: LogicalPlan, pairs: Seq[(Expression, Expression)])

/**
 * Gives the scans of one plan the keys of the joins above them as filters at run time.
 *
 * {{{
 * Join Inner (f.k = d.k)                 Join Inner (f.k = d.k)
 *   Relation f                    =>       RunTimeFilteredScan [k in keys of (Filter, Relation d)]
 *   Filter                                   Relation f
 *     Relation d                           Filter
 *                                            Relation d
 * }}}
 *
 * A row of `f` without a partner may be left out only if the join would not give it out, and only
 * if nothing between the join and the scan looks at other rows than the one it gives on. So
 *
 *  - the join is inner or left semi, and `f` is the side that is not broadcast: of an outer join
 *    Spark broadcasts the side whose rows may be left out, so none is pruned;
 *  - between them stand projections, filters, joins that hand on the rows of this side, grouping by
 *    the key and unions, all deterministic; never a limit, a window or a sample. The one exception
 *    is the projection in which Delta's MERGE numbers rows (`Delta.isOfMerge`).
 *
 * A broadcast side that has been given as keys is never changed afterwards, nor is one whose keys
 * prune partitions already: Spark would take it for another plan and reuse no broadcast.
 */
class JoinKeys(session: Compat.Session, plan: LogicalPlan) extends PredicateHelper {
  /** What Spark's own dynamic partition pruning takes keys from. */
  private lazy val frozen: Set[LogicalPlan] =
    if (!plan.containsPattern(DYNAMIC_PRUNING_SUBQUERY)) Set.empty
    else plan.collect { case node => node.expressions }.flatten
      .flatMap(_.collect { case d: DynamicPruningSubquery => d.buildQuery.canonicalized }).toSet
  private lazy val tables: Map[LogicalPlan, Int] =
    plan.collectLeaves().groupBy(_.canonicalized).map { case (leaf, all) => leaf -> all.size }

  /** The plan with its filters; itself where there is none. */
  def filtered: LogicalPlan = below(plan)

  private def below(plan: LogicalPlan): LogicalPlan = plan match {
    case _ if isFrozen(plan) => plan
    case join @ Keyed(keys) =>
      val probe = keys.pairs.zipWithIndex.foldLeft(keys.probe) { case (side, ((key, _), at)) =>
        pushed(side, key, () => Compat.pruning(_, keys.build, keys.pairs.map(_._2), at), false)
      }
      val build = if (probe eq keys.probe) below(keys.build) else keys.build
      val sides = if (keys.side == BuildRight) Seq(below(probe), build) else Seq(build, below(probe))
      join.withNewChildren(sides)
    case _ => plan.mapChildren(below)
  }
  private def isFrozen(plan: LogicalPlan): Boolean =
    frozen.nonEmpty && frozen.contains(plan.canonicalized)

  // -- which joins ----------------------------------------------------------------------------

  private object Keyed {
    def unapply(plan: LogicalPlan): Option[KeyedSides] = plan match {
      case join @ ExtractEquiJoinKeys(_, left, right, _, _, _, _, _) => broadcast(join).flatMap {
        case BuildRight if join.joinType == LeftSemi || join.joinType.isInstanceOf[InnerLike] =>
          Some(KeyedSides(BuildRight, join.left, join.right, left.zip(right)))
        case BuildLeft if join.joinType.isInstanceOf[InnerLike] =>
          Some(KeyedSides(BuildLeft, join.right, join.left, right.zip(left)))
        case _ => None
      }.filter(sides => RunTimeFilters.isRepeatable(sides.build) && isSelective(sides.build))
      case _ => None
    }
  }

  /** Whether keys of this side may leave out files: to ask for all keys of a dimension costs and saves nothing. */
  private def isSelective(build: LogicalPlan): Boolean =
    build.stats.sizeInBytes <= JoinKeys.smallBuild || build.exists {
      case Filter(condition, _) => isLikelySelective(condition)
      case _ => false
    }

  /** The side that Spark will broadcast, by hints and by sizes as known before the query runs. */
  private def broadcast(join: Join): Option[BuildSide] = {
    val hints = Seq(join.hint.leftHint, join.hint.rightHint).map(_.flatMap(_.strategy))
    val can = Seq(
      join.joinType.isInstanceOf[InnerLike] || join.joinType == RightOuter,
      join.joinType match {
        case _: InnerLike | LeftOuter | LeftSemi | LeftAnti | _: ExistenceJoin => true
        case _ => false
      })
    val limit = session.sessionState.conf.autoBroadcastJoinThreshold
    def bytes(side: LogicalPlan) = side.stats.sizeInBytes
    val wanted = join.children.zip(hints).zip(can).map { case ((side, hint), can) =>
      if (hints.contains(Some(BROADCAST))) can && hint.contains(BROADCAST)
      else can && hints.forall(_.isEmpty) && bytes(side) >= 0 && bytes(side) <= limit
    }
    wanted match {
      case Seq(false, false) => None
      case Seq(true, false) => Some(BuildLeft)
      case Seq(false, true) => Some(BuildRight)
      case _ => Some(if (bytes(join.right) <= bytes(join.left)) BuildRight else BuildLeft)
    }
  }

  // -- how far down ---------------------------------------------------------------------------

  private type Filters = () => Expression => Expression

  /**
   * The plan with a filter of `key` at the scans that give its values; itself where none does.
   *
   * @param shuffled an exchange stands between the join and this plan
   */
  private def pushed(plan: LogicalPlan, key: Expression, make: Filters, shuffled: Boolean): LogicalPlan = {
    def into(child: LogicalPlan, key: Expression, shuffled: Boolean = shuffled): LogicalPlan =
      if (key.references.subsetOf(child.outputSet)) pushed(child, key, make, shuffled) else child
    plan match {
      case _ if isFrozen(plan) => plan
      case p: Project if p.projectList.forall(_.deterministic) || Delta.isOfMerge(p) =>
        replaced(p, narrowed(p, into(p.child, replaceAlias(key, getAliasMap(p)))))
      case f: Filter if f.condition.deterministic => replaced(f, into(f.child, key))
      case a: Aggregate if a.aggregateExpressions.forall(_.deterministic) =>
        val below = replaceAlias(key, getAliasMap(a))
        val groups = AttributeSet(a.groupingExpressions.collect { case g: Attribute => g })
        if (below.references.isEmpty || !below.references.subsetOf(groups)) a
        else replaced(a, into(a.child, below, shuffled = true))
      case u: Union if u.output.map(_.exprId).distinct.size == u.output.size =>
        replaced(u, u.children.map { child =>
          into(child, key.transform { case a: Attribute if u.outputSet.contains(a) =>
            child.output(u.output.indexWhere(_.exprId == a.exprId))
          })
        }: _*)
      case j: Join =>
        val built = broadcast(j)
        def side(of: LogicalPlan, handsOn: Boolean, own: BuildSide) =
          if (handsOn && !built.contains(own) && j.condition.forall(_.deterministic)) {
            into(of, key, shuffled || built.isEmpty)
          } else of
        replaced(
          j, side(j.left, handsOnLeft(j.joinType), BuildLeft),
          side(j.right, handsOnRight(j.joinType), BuildRight))
      case RunTimeFilteredScan(l: LogicalRelation, filters) if isPruned(l, key, shuffled) =>
        RunTimeFilteredScan(l, filters :+ make()(bare(key)))
      case l: LogicalRelation if isPruned(l, key, shuffled) =>
        RunTimeFilteredScan(l, Seq(make()(bare(key))))
      case _ => plan
    }
  }

  /** A child with a filter at its scan. Spark plans it apart from what is not deterministic, and would read all columns. */
  private def narrowed(p: Project, child: LogicalPlan): LogicalPlan =
    if ((child eq p.child) || p.projectList.forall(_.deterministic)) child
    else Project(child.output.filter(p.references.contains), child)

  private def replaced(plan: LogicalPlan, children: LogicalPlan*): LogicalPlan =
    if (children.zip(plan.children).forall { case (a, b) => a eq b }) plan
    else plan.withNewChildren(children)

  // Filters of a side that commute with the join: it gives out such rows whatever else they meet.
  private def handsOnLeft(kind: JoinType): Boolean = kind match {
    case _: InnerLike | LeftOuter | LeftSemi | LeftAnti | _: ExistenceJoin => true
    case _ => false
  }
  private def handsOnRight(kind: JoinType): Boolean = kind match {
    case _: InnerLike | RightOuter => true
    case _ => false
  }

  // -- which scans ----------------------------------------------------------------------------

  /** Comparisons of an index are those of joins: NaN equals NaN, and 0.0 equals -0.0. */
  private def bare(key: Expression): Expression = RunTimeFilters.withoutNormalization(key)

  private def isPruned(scan: LogicalRelation, key: Expression, shuffled: Boolean): Boolean =
    (scan.relation, scan.catalogTable) match {
      case (fs: HadoopFsRelation, Some(table)) if !scan.isStreaming && SieveStrategy.known(fs) =>
        // One exchange may serve all scans of a table that are alike; this one would be another.
        val alone = !shuffled || tables.getOrElse(scan.canonicalized, 1) == 1
        alone && RunTimeFilters.column(bare(key), scan.output).exists { path =>
          !fs.partitionSchema.fieldNames.contains(path.head) &&
            Registry.find(session, table).exists(_.columns.contains(DeltaColumns.stored(fs)(path)))
        }
      case _ => false
    }
}

object JoinKeys {
  private val smallBuild = Policy.limit("run_time_small_build_bytes")
}
