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
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.sieve.predicate.IndexedColumns
import org.apache.spark.sql.sieve.base.Reason.Reason
import org.apache.spark.sql.sieve.base.{Compat, Reason, Settings}
import org.apache.spark.sql.sieve.catalog.Registry
import org.apache.spark.sql.sieve.formats.TableFormat

/**
 * Adds the keys of joins as run-time filters to the scans below the joins.
 *
 * {{{
 * Join Inner (f.k = d.k)                 Join Inner (f.k = d.k)
 *   Relation f                    =>       RunTimeFilteredScan [k in keys of (Filter, Relation d)]
 *   Filter                                   Relation f
 *     Relation d                           Filter
 *                                            Relation d
 * }}}
 *
 * A filter removes rows of `f` whose key does not occur in `d`. The join must not need the removed rows. Without the
 * removed rows, the nodes between the join and the scan must still return the same other rows. So there are two
 * conditions:
 *
 *  - `f` is either side of an inner or left semi join. Or `f` is the right side of a left outer, left anti or existence
 *    join. Or `f` is the left side of a right outer join. If Spark broadcasts the other side, the broadcast supplies
 *    the keys. Otherwise, a subquery collects the keys (`FetchedKeys` decides when).
 *  - Each node between the join and the scan is a deterministic projection, a filter, a grouping by the key, a union,
 *    or a join. If the node is a join, filtering its input must have the same result as filtering the joined rows. No
 *    node is a limit, a window or a sample. The only allowed nondeterministic projection numbers the rows of a MERGE's
 *    target (`TableFormat.numbersRows`).
 *
 * Spark reuses a broadcast only for an equal plan. So the plan of a broadcast side must not change if the side supplies
 * keys, or if Spark prunes partitions by the side's keys. If a join above a broadcast side prunes partitions of this
 * side, the side supplies no keys.
 *
 * @param fetches whether subqueries are allowed to collect keys
 */
class JoinKeys(session: Compat.Session, plan: LogicalPlan, fetches: Boolean) extends PredicateHelper {
  /** The plans that supply keys to Spark's dynamic partition pruning, and so must not change. */
  private lazy val frozen: Set[LogicalPlan] =
    if (!plan.containsPattern(DYNAMIC_PRUNING_SUBQUERY)) Set.empty
    else plan.collect { case node => node.expressions }.flatten
      .flatMap(_.collect { case d: DynamicPruningSubquery => d.buildQuery.canonicalized }).toSet
  private lazy val bytes = new BytesLeft(session, plan)
  /** Run-time filters of scans below an exchange. Equal scans without run-time filters could share the exchange. */
  private val beyondExchange = mutable.ArrayBuffer.empty[Expression]

  /** Returns the plan with run-time filters, or the same plan if no scan gets a filter. */
  def filtered: LogicalPlan = withSharing(below(plan))

  private def below(plan: LogicalPlan): LogicalPlan = plan match {
    case _ if isFrozen(plan) => plan
    case join: Join =>
      sources(join).view.map(source => (source, keyed(source))).find { case (source, probe) =>
        probe ne source.probe
      }.fold(join.mapChildren(below)) {
        case (source, probe) if source.side == BuildRight => join.withNewChildren(Seq(below(probe), buildSide(source)))
        case (source, probe) => join.withNewChildren(Seq(buildSide(source), below(probe)))
      }
    case _ => plan.mapChildren(below)
  }

  /**
   * Returns the plan of a build side that has supplied keys. The plan of a broadcast stays unchanged. If a subquery
   * collected the keys, joins inside the build side can add keys to the side's own scans.
   */
  private def buildSide(source: KeySource): LogicalPlan = if (source.isShared) source.build else below(source.build)
  private def isFrozen(plan: LogicalPlan): Boolean =
    frozen.nonEmpty && frozen.contains(plan.canonicalized)

  /**
   * Adds filters on the keys to the scans of the probe side. Returns the probe side unchanged if no scan gets a filter,
   * or if there is a reason not to use the keys.
   */
  private def keyed(all: KeySource): LogicalPlan = {
    val tuples = this.tuples(all)
    // A job collects only keys that some scan of the probe side uses.
    val useful = all.pairs.indices.filter(at => all.isShared || tuples.exists(_.contains(at)) || reaches(all.probe, all.pairs(at)._1))
    val source = all.copy(pairs = useful.map(all.pairs), tuples = tuples.map(_.map(useful.indexOf(_))))
    val reached = mutable.ArrayBuffer.empty[(LogicalRelation, Expression)]
    val before = beyondExchange.size
    val probe = source.keys.zipWithIndex.foldLeft(source.probe) { case (side, (key, at)) =>
      def filter(scan: LogicalRelation, key: Expression, shuffled: Boolean) = {
        reached += scan -> key
        val made = source.filter(key, at)
        if (shuffled) beyondExchange += made
        made
      }
      pushed(side, key, new KeyFilters(source.isShared, filter, refuseBroadcast), shuffled = !source.isShared)
    }
    val scans = reached.map(_._1).distinct.toSeq
    if (scans.isEmpty) source.probe
    // If no index can evaluate the keys, a job that reads the keys is useless.
    else refusal(source, scans).orElse(if (source.isShared) None else bytes.unserved(reached.toSeq)).fold(probe) { reason =>
      beyondExchange.remove(before, beyondExchange.size - before)
      scans.foreach(JoinRefusals.note(_, reason))
      source.probe
    }
  }

  /** Finds tuples of join keys with an index on a scan of the probe side, and returns each tuple's key positions. */
  private def tuples(source: KeySource): Seq[Seq[Int]] =
    if (source.pairs.size < 2) Nil
    else {
      val found = mutable.ArrayBuffer.empty[(LogicalRelation, (Int, Expression))]
      for (((key, _), at) <- source.pairs.zipWithIndex)
        pushed(source.probe, key, new KeyFilters(source.isShared, (scan, part, _) => {
          found += scan -> (at -> part)
          Literal.TrueLiteral
        }, isServed = (scan, _) => indexed(scan).exists(_.expressions.tuples.nonEmpty)), shuffled = !source.isShared)
      found.map(_._1).distinct.toSeq.flatMap { scan =>
        val (places, parts) = found.collect { case (own, part) if own == scan => part }.toSeq.unzip
        indexed(scan).toSeq.flatMap(_.tuplesAmong(parts)).map(_.map(places))
      }.distinct
    }

  /** True if a key's values come from a scan of the probe side, and an index can prune this scan by the key. */
  private def reaches(probe: LogicalPlan, key: Expression): Boolean =
    pushed(probe, key, new KeyFilters(isShared = false, (_, _, _) => Literal.TrueLiteral), shuffled = false) ne probe

  /**
   * Records that the scans of a side get no keys, because Spark broadcasts this side. In a recursive query, records
   * nothing, because Spark plans each iteration again and may then broadcast the other side.
   */
  private def refuseBroadcast(side: LogicalPlan, key: Expression): Unit =
    if (!plan.exists(Loops.isReference)) pushed(side, key, new KeyFilters(isShared = true, (scan, _, _) => {
      JoinRefusals.note(scan, Reason.JoinBroadcast)
      Literal.TrueLiteral
    }, refuseBroadcast), shuffled = false)

  // -- joins that supply keys -----------------------------------------------------------------

  /**
   * The sides of a join that can supply keys. If the broadcast side can supply keys, the result contains only this
   * side. Otherwise, the smaller side is first.
   */
  private def sources(join: Join): Seq[KeySource] = join match {
    case ExtractEquiJoinKeys(_, left, right, _, _, _, _, _) =>
      val built = broadcast(join)
      def source(side: BuildSide) = {
        val isShared = built.contains(side) && isFoundAgain(join.children(if (side == BuildLeft) 0 else 1))
        if (side == BuildRight) {
          KeySource(side, join.left, join.right, left.zip(right), isShared)
        } else KeySource(side, join.right, join.left, right.zip(left), isShared)
      }
      Seq(BuildLeft, BuildRight).filter(JoinKeys.mayPruneByKeysOf(join.joinType, _)).map(source) match {
        case both if both.exists(_.isShared) =>
          val (shared, ofBroadcast) = both.partition(_.isShared)
          ofBroadcast.foreach(source => source.pairs.foreach { case (key, _) => refuseBroadcast(source.probe, key) })
          shared
        case fetched => fetched.sortBy(_.build.stats.sizeInBytes)
      }
    case _ => Nil
  }

  /**
   * True if a run-time filter can reuse the broadcast of this side. In adaptive execution, Spark plans each scan of a
   * cached table again, so Spark cannot reuse a broadcast that scans a cached table.
   */
  private def isFoundAgain(build: LogicalPlan): Boolean = !asksAbove(build) &&
    !(session.sessionState.conf.adaptiveExecutionEnabled && build.exists(_.isInstanceOf[InMemoryRelation]))

  /**
   * True if a join above this side prunes partitions of this side. The plan that supplies the side's keys lacks this
   * join, and so reads all partitions. As a result, Spark could not reuse the broadcast.
   */
  private def asksAbove(build: LogicalPlan): Boolean = build.containsPattern(DYNAMIC_PRUNING_SUBQUERY) && {
    val within = build.collect { case join: Join => join.children.map(_.canonicalized) }.flatten.toSet
    build.exists(_.expressions.exists(_.exists {
      case keys: DynamicPruningSubquery => !within(keys.buildQuery.canonicalized)
      case _ => false
    }))
  }

  /**
   * The reason why scans do not use a side's keys: the keys are not selective, reading them costs too much, or a second
   * run could return other keys. Returns None if scans use the keys.
   */
  private def refusal(source: KeySource, scans: Seq[LogicalRelation]): Option[Reason] =
    if (!RunTimeFilters.isRepeatable(source.build)) Some(Reason.JoinNotRepeatable)
    else if (!source.isShared && !(fetches && FetchedKeys.isRepeatable(source.uncounted))) Some(Reason.JoinNotRepeatable)
    else if (Settings.joinAlways(session)) None
    else if (!isSelective(source.build) && !isOfMerge(source.probe)) Some(Reason.JoinNotSelective)
    else if (!source.isShared && !(SimplePlans.isSimple(source.collected.plan) &&
      FetchedKeys.isCheap(source.build, scans, bytes))) Some(Reason.JoinTooCostly)
    else None

  /**
   * True if the keys of this side are likely to exclude files. Reading the keys of a whole dimension table takes time,
   * but these keys exclude nothing.
   */
  private def isSelective(build: LogicalPlan): Boolean =
    build.stats.sizeInBytes <= JoinKeys.smallBuild || build.exists {
      case Filter(condition, _) => isLikelySelective(condition)
      case _ => false
    }

  /** True if the other side is the target of a MERGE. The source of a MERGE is a batch of changes, and so selective. */
  private def isOfMerge(probe: LogicalPlan): Boolean = probe.exists {
    case p: Project => !p.projectList.forall(_.deterministic) && TableFormat.numbersRows(p)
    case _ => false
  }

  /**
   * True if Spark can hash the keys of a join. If Spark cannot hash the keys, it sorts both sides and broadcasts no
   * side.
   */
  private def isHashed(join: Join): Boolean = join match {
    case ExtractEquiJoinKeys(_, left, right, _, _, _, _, _) => (left ++ right).forall(k => Compat.isHashed(k.dataType))
    case _ => true
  }

  /** The side that Spark will broadcast, according to hints and to Spark's estimates of sizes before the query runs. */
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
      else can && hint.isEmpty && hints.flatten.forall(JoinKeys.forbidsBroadcast) && bytes(side) >= 0 && bytes(side) <= limit
    }
    wanted match {
      case Seq(false, false) => None
      case Seq(true, false) => Some(BuildLeft)
      case Seq(false, true) => Some(BuildRight)
      case _ => Some(if (bytes(join.right) <= bytes(join.left)) BuildRight else BuildLeft)
    }
  }

  // -- pushing filters down to scans ----------------------------------------------------------

  /**
   * Describes which filters `pushed` adds to scans.
   *
   * @param isShared  true if a broadcast supplies the keys
   * @param make      creates a scan's filter from a key and a flag; the flag is true if there is an exchange between
   *                  the join and the scan
   * @param broadcast is called for each side that gets no filter because Spark broadcasts the side
   * @param isServed  returns true if a scan gets a filter on a key
   */
  private class KeyFilters(
      val isShared: Boolean, val make: (LogicalRelation, Expression, Boolean) => Expression,
      val broadcast: (LogicalPlan, Expression) => Unit = (_, _) => (),
      val isServed: (LogicalRelation, Expression) => Boolean = isPruned)

  /**
   * Adds filters on `key` to the scans from which the key's values come. Returns the plan unchanged if no scan gets a
   * filter.
   *
   * @param shuffled true if there is an exchange between the join and this plan
   */
  private def pushed(plan: LogicalPlan, key: Expression, of: KeyFilters, shuffled: Boolean): LogicalPlan = {
    def into(child: LogicalPlan, key: Expression, shuffled: Boolean = shuffled): LogicalPlan =
      if (key.references.subsetOf(child.outputSet)) pushed(child, key, of, shuffled) else child
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
        def side(child: LogicalPlan, handsOn: Boolean, own: BuildSide) =
          if (!handsOn || !j.condition.forall(_.deterministic)) child
          else if (!built.contains(own)) into(child, key, shuffled || built.isEmpty)
          else {
            if (key.references.subsetOf(child.outputSet)) of.broadcast(child, key)
            child
          }
        replaced(
          j, side(j.left, handsOnLeft(j.joinType), BuildLeft),
          side(j.right, handsOnRight(j.joinType), BuildRight))
      case RunTimeFilteredScan(scan, filters) => filtered(scan, filters, key, of, shuffled).getOrElse(plan)
      case scan => filtered(scan, Nil, key, of, shuffled).getOrElse(scan)
    }
  }

  /** Adds a filter to a scan of files. Returns None if no index evaluates the filter. */
  private def filtered(
      scan: LogicalPlan, others: Seq[Expression], key: Expression, of: KeyFilters, shuffled: Boolean): Option[LogicalPlan] =
    (scan match {
      case files: LogicalRelation => Some(files)
      case source: DataSourceV2ScanRelation => TableFormat.scanned(
        source.relation.table, source.relation.options, source.scan, source.output, session)
      case _ => None
    }).filter(of.isServed(_, key)).map(files => RunTimeFilteredScan(scan, others :+ of.make(files, bare(key), shuffled)))

  /**
   * Restricts the input of a nondeterministic projection to the columns that the projection needs. If the input has a
   * filter, Spark would otherwise read all columns.
   */
  private def narrowed(p: Project, child: LogicalPlan): LogicalPlan =
    if ((child eq p.child) || p.projectList.forall(_.deterministic)) child
    else Project(child.output.filter(p.references.contains), child)

  private def replaced(plan: LogicalPlan, children: LogicalPlan*): LogicalPlan =
    if (children.zip(plan.children).forall { case (a, b) => a eq b }) plan
    else plan.withNewChildren(children)

  // True if filtering the left side by a key before the join has the same result as filtering the joined rows.
  private def handsOnLeft(kind: JoinType): Boolean = kind match {
    case _: InnerLike | LeftOuter | LeftSemi | LeftAnti | _: ExistenceJoin => true
    case _ => false
  }
  private def handsOnRight(kind: JoinType): Boolean = kind match {
    case _: InnerLike | RightOuter => true
    case _ => false
  }

  // -- scans that an index prunes -------------------------------------------------------------

  /** Removes the normalization of floats, because indexes and joins compare floats alike (NaN = NaN, 0.0 = -0.0). */
  private def bare(key: Expression): Expression = RunTimeFilters.withoutNormalization(key)

  private def isPruned(scan: LogicalRelation, key: Expression): Boolean =
    indexed(scan).exists(_.contains(bare(key)))

  private def indexed(scan: LogicalRelation): Option[IndexedColumns] = (scan.relation, scan.catalogTable) match {
    case (fs: HadoopFsRelation, Some(table)) if !scan.isStreaming && TableFormat.isKnown(fs) =>
      Registry.find(session, table).map(new IndexedColumns(scan, fs, _, session))
    case _ => None
  }

  // -- scans that share an exchange -----------------------------------------------------------

  /**
   * Removes run-time filters from scans that are equal without these filters. The scans can then share an exchange,
   * which saves more time than skipping files in one of the scans.
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
          if (shared.nonEmpty) JoinRefusals.note(scan.child, Reason.ExchangeShared)
          if (own.isEmpty) scan.child else if (shared.isEmpty) scan else scan.copy(filters = own)
      }
    }

  /** The parts of a plan that consist of a scan and of the projections and filters above the scan. */
  private def chains(plan: LogicalPlan): Seq[LogicalPlan] =
    if (JoinKeys.isChain(plan)) Seq(plan) else plan.children.flatMap(chains)
}

object JoinKeys {
  /** A side of at most this size, in bytes, counts as a short list of keys, even if it has no selective filter. */
  private val smallBuild = 1L << 16

  /** True if a hint only forbids a broadcast of its side. MERGE sets this hint on its target. */
  private def forbidsBroadcast(hint: JoinStrategyHint): Boolean =
    hint == NO_BROADCAST_HASH || hint == NO_BROADCAST_AND_REPLICATION

  /** True if a join needs only those rows of the other side whose keys occur on `side`. */
  private def mayPruneByKeysOf(kind: JoinType, side: BuildSide): Boolean = (kind, side) match {
    case (_: InnerLike | LeftSemi, _) => true
    case (LeftOuter | LeftAnti | _: ExistenceJoin, BuildLeft) | (RightOuter, BuildRight) => true
    case _ => false
  }

  private def isChain(plan: LogicalPlan): Boolean = plan match {
    case _: Project | _: Filter | _: RunTimeFilteredScan => isChain(plan.children.head)
    case _: LogicalRelation | _: DataSourceV2ScanRelation => true
    case _ => false
  }

  private def unfiltered(chain: LogicalPlan): LogicalPlan =
    chain.transformDown { case RunTimeFilteredScan(child, _) => child }
}
