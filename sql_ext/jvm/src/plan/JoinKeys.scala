package org.apache.spark.sql.sieve.plan

import scala.collection.mutable
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.DYNAMIC_PRUNING_SUBQUERY
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sieve.ask.Filters
import org.apache.spark.sql.sieve.base.Reason.Reason
import org.apache.spark.sql.sieve.base.{Compat, Reason, Settings}
import org.apache.spark.sql.sieve.catalog.Registry
import org.apache.spark.sql.sieve.formats.TableFormat

/**
 * A side of a join whose keys may leave out rows of the other one.
 *
 * @param side     the build side: the one that gives keys
 * @param pairs    keys of the probe side, each with that of the build side
 * @param isShared whether Spark broadcasts the build side, so that its keys cost nothing
 * @param alone    whether no exchange stands between the join and the probe side
 */
final case class KeySource(
    side: BuildSide, probe: LogicalPlan, build: LogicalPlan, pairs: Seq[(Expression, Expression)],
    isShared: Boolean, alone: Boolean) {
  /**
   * The keys by a job of their own; one for all scans that they prune. What Spark asks for partitions there
   * comes from a broadcast or not at all: a query within this one would hold a second thread of Spark's pool.
   */
  lazy val collected: ScalarSubquery = DistinctKeys.of(build.transformAllExpressions {
    case partitions: DynamicPruningSubquery if !partitions.onlyInBroadcast => Literal.TrueLiteral
  }, pairs.map(_._2))

  /** A filter of a scan by one of the keys. */
  def filter(key: Expression, at: Int): Expression =
    if (isShared) Compat.pruning(key, build, pairs.map(_._2), at)
    else AmongKeys(key, GetStructField(collected, at))
}

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
 *  - `f` is a side of an inner or left semi join, or the one of an outer join that gets NULLs for rows
 *    without a partner. Where Spark broadcasts the other side its keys come out of the broadcast, else a
 *    subquery collects them (`FetchedKeys` says when);
 *  - between them stand projections, filters, joins that hand on the rows of this side, grouping by
 *    the key and unions, all deterministic; never a limit, a window or a sample. The one exception
 *    is the projection in which Delta's MERGE numbers rows (`TableFormat.numbersRows`).
 *
 * A broadcast side that has been given as keys is never changed afterwards, nor is one whose keys
 * prune partitions already, nor has one keys whose own partitions are picked by a join above: Spark would
 * take it for another plan and reuse no broadcast.
 *
 * @param fetches whether keys may be collected by a subquery
 */
class JoinKeys(session: Compat.Session, plan: LogicalPlan, fetches: Boolean) extends PredicateHelper {
  /** What Spark's own dynamic partition pruning takes keys from. */
  private lazy val frozen: Set[LogicalPlan] =
    if (!plan.containsPattern(DYNAMIC_PRUNING_SUBQUERY)) Set.empty
    else plan.collect { case node => node.expressions }.flatten
      .flatMap(_.collect { case d: DynamicPruningSubquery => d.buildQuery.canonicalized }).toSet
  private lazy val bytes = new BytesLeft(session, plan)
  /** Filters of scans below an exchange, which may serve other scans alike. */
  private val beyondExchange = mutable.ArrayBuffer.empty[Expression]

  /** The plan with its filters; itself where there is none. */
  def filtered: LogicalPlan = withSharing(below(plan))

  private def below(plan: LogicalPlan): LogicalPlan = plan match {
    case _ if isFrozen(plan) || Loops.isLoop(plan) => plan
    case join: Join =>
      sources(join).view.map(source => (source, keyed(source))).find { case (source, probe) =>
        probe ne source.probe
      }.fold(join.mapChildren(below)) {
        case (source, probe) if source.side == BuildRight => join.withNewChildren(Seq(below(probe), rest(source)))
        case (source, probe) => join.withNewChildren(Seq(rest(source), below(probe)))
      }
    case _ => plan.mapChildren(below)
  }

  /** What remains of a side that gave its keys. One that is read apart for them may get keys from within. */
  private def rest(source: KeySource): LogicalPlan = if (source.isShared) source.build else below(source.build)
  private def isFrozen(plan: LogicalPlan): Boolean =
    frozen.nonEmpty && frozen.contains(plan.canonicalized)

  /** The probe side with the keys at its scans; itself where they reach none, or are not worth it. */
  private def keyed(all: KeySource): LogicalPlan = {
    val source = if (all.isShared) all else all.copy(pairs = all.pairs.filter { case (key, _) => reaches(all.probe, key) })
    val reached = mutable.ArrayBuffer.empty[LogicalRelation]
    val before = beyondExchange.size
    val probe = source.pairs.zipWithIndex.foldLeft(source.probe) { case (side, ((key, _), at)) =>
      def filter(scan: LogicalRelation, key: Expression, shuffled: Boolean) = {
        reached += scan
        val made = source.filter(key, at)
        if (shuffled) beyondExchange += made
        made
      }
      pushed(side, key, filter, !source.alone)
    }
    val scans = reached.distinct.toSeq
    if (scans.isEmpty) source.probe
    else refusal(source, scans).fold(probe) { reason =>
      beyondExchange.remove(before, beyondExchange.size - before)
      scans.foreach(JoinRefusals.note(_, reason))
      source.probe
    }
  }

  /** Whether any scan below gives the values of a key: others are not collected. */
  private def reaches(probe: LogicalPlan, key: Expression): Boolean =
    pushed(probe, key, (_, _, _) => Literal.TrueLiteral, shuffled = false) ne probe

  // -- which joins ----------------------------------------------------------------------------

  /** The sides that may give keys, the cheaper first. */
  private def sources(join: Join): Seq[KeySource] = join match {
    case ExtractEquiJoinKeys(_, left, right, _, _, _, _, _) =>
      val built = broadcast(join)
      def source(side: BuildSide) = {
        val isShared = built.contains(side) && isFoundAgain(join.children(if (side == BuildLeft) 0 else 1))
        // Of a side that is broadcast the exchange stands between, too.
        if (side == BuildRight) {
          KeySource(side, join.left, join.right, left.zip(right), isShared, alone = isShared)
        } else KeySource(side, join.right, join.left, right.zip(left), isShared, alone = isShared)
      }
      Seq(BuildLeft, BuildRight).filter(JoinKeys.mayPruneByKeysOf(join.joinType, _)).map(source) match {
        // To ask the other side would save no more than a table that is broadcast.
        case both if both.exists(_.isShared) => both.filter(_.isShared)
        case fetched => fetched.sortBy(_.build.stats.sizeInBytes)
      }
    case _ => Nil
  }

  /** Whether the broadcast is found again: adaptive execution plans a scan of a cached table again each time. */
  private def isFoundAgain(build: LogicalPlan): Boolean = !asksAbove(build) &&
    !(session.sessionState.conf.adaptiveExecutionEnabled && build.exists(_.isInstanceOf[InMemoryRelation]))

  /**
   * Whether Spark picks partitions of this side by keys of a join above it. Planned apart from that join, the side
   * reads all partitions: another broadcast.
   */
  private def asksAbove(build: LogicalPlan): Boolean = build.containsPattern(DYNAMIC_PRUNING_SUBQUERY) && {
    val within = build.collect { case join: Join => join.children.map(_.canonicalized) }.flatten.toSet
    build.exists(_.expressions.exists(_.exists {
      case keys: DynamicPruningSubquery => !within(keys.buildQuery.canonicalized)
      case _ => false
    }))
  }

  /** Why the keys of a side are not worth asking for, or must not be relied on. */
  private def refusal(source: KeySource, scans: Seq[LogicalRelation]): Option[Reason] =
    if (!RunTimeFilters.isRepeatable(source.build)) Some(Reason.JoinNotRepeatable)
    else if (!source.isShared && !(fetches && FetchedKeys.isRepeatable(source.build))) Some(Reason.JoinNotRepeatable)
    else if (Settings.joinAlways(session)) None
    else if (!isSelective(source.build)) Some(Reason.JoinNotSelective)
    else if (!source.isShared && !(SimplePlans.isSimple(source.collected.plan) &&
      FetchedKeys.isCheap(source.build, scans, bytes))) Some(Reason.JoinTooCostly)
    else None

  /** Whether keys of this side may leave out files: to ask for all keys of a dimension costs and saves nothing. */
  private def isSelective(build: LogicalPlan): Boolean =
    build.stats.sizeInBytes <= JoinKeys.smallBuild || build.exists {
      case Filter(condition, _) => isLikelySelective(condition)
      case _ => false
    }

  /** Whether Spark can look up the keys of a join by their bytes: else it sorts both sides, whatever hints say. */
  private def isHashed(join: Join): Boolean = join match {
    case ExtractEquiJoinKeys(_, left, right, _, _, _, _, _) => (left ++ right).forall(k => Compat.isHashed(k.dataType))
    case _ => true
  }

  /** The side that Spark will broadcast, by hints and by sizes as known before the query runs. */
  private def broadcast(join: Join): Option[BuildSide] = if (!isHashed(join)) None else {
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

  /** Makes the filter of a scan by a key; the flag tells whether an exchange stands above it. */
  private type Filters = (LogicalRelation, Expression, Boolean) => Expression

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
      case p: Project if p.projectList.forall(_.deterministic) || TableFormat.numbersRows(p) =>
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
      case RunTimeFilteredScan(l: LogicalRelation, filters) if isPruned(l, key) =>
        RunTimeFilteredScan(l, filters :+ make(l, bare(key), shuffled))
      case l: LogicalRelation if isPruned(l, key) =>
        RunTimeFilteredScan(l, Seq(make(l, bare(key), shuffled)))
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

  private def isPruned(scan: LogicalRelation, key: Expression): Boolean =
    (scan.relation, scan.catalogTable) match {
      case (fs: HadoopFsRelation, Some(table)) if !scan.isStreaming && TableFormat.isKnown(fs) =>
        RunTimeFilters.column(bare(key), scan.output).exists { path =>
          !fs.partitionSchema.fieldNames.contains(path.head) &&
            Registry.find(session, table).exists(_.columns.contains(TableFormat.of(fs).stored(fs)(path)))
        }
      case _ => false
    }

  // -- what scans share -----------------------------------------------------------------------

  /**
   * The plan without the filters that would keep scans alike from sharing an exchange: it serves
   * all of them, if they have the same filters, and is worth more than what one of them skips.
   */
  private def withSharing(plan: LogicalPlan): LogicalPlan =
    if (beyondExchange.isEmpty) plan
    else {
      val unlike = chains(plan).groupBy(JoinKeys.unfiltered(_).canonicalized).values
        .filter(_.map(_.canonicalized).toSet.size > 1).flatten
        .flatMap(_.collectFirst { case scan: RunTimeFilteredScan => scan }).toSeq
      plan.transformDown {
        case scan: RunTimeFilteredScan if unlike.exists(_ eq scan) =>
          val (shared, own) = scan.filters.partition(filter => beyondExchange.exists(_ eq filter))
          scan.child match {
            case l: LogicalRelation if shared.nonEmpty => JoinRefusals.note(l, Reason.ExchangeShared)
            case _ =>
          }
          if (own.isEmpty) scan.child else if (shared.isEmpty) scan else scan.copy(filters = own)
      }
    }

  /** Scans with the projections and filters above them. */
  private def chains(plan: LogicalPlan): Seq[LogicalPlan] =
    if (JoinKeys.isChain(plan)) Seq(plan) else plan.children.flatMap(chains)
}

object JoinKeys {
  /** A side without a selective predicate may be a short list of keys, or a whole dimension. */
  private val smallBuild = 1L << 16

  /** Whether a join gives out no row of the other side whose keys this side lacks, or looks at none. */
  private def mayPruneByKeysOf(kind: JoinType, side: BuildSide): Boolean = (kind, side) match {
    case (_: InnerLike | LeftSemi, _) => true
    case (LeftOuter, BuildLeft) | (RightOuter, BuildRight) => true
    case _ => false
  }

  private def isChain(plan: LogicalPlan): Boolean = plan match {
    case _: Project | _: Filter | _: RunTimeFilteredScan => isChain(plan.children.head)
    case _ => plan.isInstanceOf[LogicalRelation]
  }

  private def unfiltered(chain: LogicalPlan): LogicalPlan =
    chain.transformDown { case RunTimeFilteredScan(child, _) => child }
}
