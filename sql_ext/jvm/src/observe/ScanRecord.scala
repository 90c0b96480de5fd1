package org.apache.spark.sql.sieve.observe

import java.util.UUID
import java.util.concurrent.TimeoutException
import scala.jdk.CollectionConverters._
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.{Inner, JoinType, LeftSemi}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, ShuffledHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.sql.sieve.ask.{FrontendClient, FrontendDown, FrontendProcess}
import org.apache.spark.sql.sieve.predicate.{Filters, IndexedExpressions, ProposedExpressions}
import org.apache.spark.sql.sieve.base.{Compat, Failure, Json, LruMap, OnceLogging, Settings, SieveException}
import org.apache.spark.sql.sieve.catalog.TableIdentity
import org.apache.spark.sql.sieve.formats.TableFormat

/**
 * The scans that this driver has run, summed for each combination of table, form of the filters, and used indexes. The
 * form of a filter contains the filter's columns and expressions, but not the constants in comparisons. This object
 * examines a plan on the thread of Spark's listener bus after the query has ended, so no query waits.
 */
object ScanRecord extends SparkListener with PredicateHelper with OnceLogging {
  private final class Sums { var scans, bytes, files, filesSkipped, bytesSkipped = 0L }
  private type Node = Map[String, Any]

  private val sums = new LruMap[String, Sums](1000)
  // If the text of a filter is longer than this number of characters, the record contains "unknown" instead.
  private val longest = 2000
  private var since = 0L
  private var driver = newDriver
  private def newDriver: String = UUID.randomUUID.toString.replace("-", "")

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: SparkListenerSQLExecutionEnd if e.executionFailure.isEmpty =>
      try Option(e.qe).foreach { execution =>
        val isFirst = synchronized(sums.isEmpty)
        add(execution.executedPlan)
        // Starts the front end, which saves the record from time to time. If the front end cannot start, other code
        // reports the failure.
        if (isFirst && isSaved(execution.sparkSession))
          try FrontendProcess.ensure(execution.sparkSession, atOnce = false) catch { case _: FrontendDown => }
      }
      // If a plan contains unknown operators, they must not cause an error on Spark's listener bus.
      catch { case e @ Failure() => warnOnce(s"scans are not recorded: ${e.getClass}") }
    case _ =>
  }

  override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = synchronized {
    sums.clear()
    driver = newDriver
  }

  private def isSaved(session: Compat.Session): Boolean =
    Settings.history(session.sparkContext) && synchronized(!sums.isEmpty)

  /** Saves the record when the application ends, if `spark.sieve.history` is set. */
  def save(session: Compat.Session): Unit =
    if (isSaved(session)) try FrontendClient.saveHistory(session) catch {
      case e @ (_: FrontendDown | _: TimeoutException | _: SieveException) =>
        logWarning(s"sieve: the record of the latest scans is not saved: $e")
    }

  /**
   * The record as JSON. The record contains the driver's id, the time in milliseconds at which the first recorded scan
   * ended, and the sums for each combination.
   */
  def json: String = synchronized(Json.write(Map("driver" -> driver, "since" -> since, "scans" -> sums.asScala.toSeq.map {
    case (asked, sum) => Map("asked" -> asked, "scans" -> sum.scans, "bytes" -> sum.bytes, "files" -> sum.files,
      "files_skipped" -> sum.filesSkipped, "bytes_skipped" -> sum.bytesSkipped)
  })))

  private def add(plan: SparkPlan): Unit = {
    lazy val fromParents = EndedScan.nodes(plan).flatMap(keysOf)
    for (scan <- EndedScan.in(plan) if scan.table.database.nonEmpty) {
      val name = Seq(TableIdentity.namespace(scan.table), scan.table.table)
      val used = scan.index.fold(Seq.empty[String])(_.used)
      def keyWith(filter: Node) = Json.write(Map("table" -> name, "used" -> used, "filter" -> filter))
      val whole = keyWith(filterOf(scan, fromParents))
      val key = if (whole.length <= longest) whole else keyWith(Map("op" -> "unknown"))
      synchronized {
        if (sums.isEmpty) since = System.currentTimeMillis
        val sum = sums.computeIfAbsent(key, _ => new Sums)
        sum.scans += 1
        sum.bytes += scan.bytes
        sum.files += scan.files
        sum.filesSkipped += scan.filesSkipped
        sum.bytesSkipped += scan.bytesSkipped
      }
    }
  }

  /**
   * The predicate tree of a scan's filters, without constants. The tree also contains the scan's columns that other
   * nodes of the plan use as join keys or sort orders.
   */
  private def filterOf(scan: EndedScan, fromParents: Seq[(ExprId, String)]): Node = {
    val names = scan.node.output.map(a => a.exprId -> a.name).toMap
    val indexed = scan.index.fold(IndexedExpressions.none)(_.expressions)
    val partitions = TableFormat.of(scan.relation).partitionColumns(scan.relation).toSet
    val tree = new Filters(names, partitions, identity, new ProposedExpressions(indexed)).conjunction(scan.filters)
    val more = fromParents.distinct.collect { case (id, op) if names.contains(id) =>
      Map("op" -> op, "col" -> Seq(names(id)))
    }
    Map("op" -> "and", "args" -> (bare(tree) +: more))
  }

  private def bare(node: Node): Node = node.collect {
    case ("values", values: Seq[_]) => "values" -> values.size
    case ("args", args: Seq[_]) =>
      val own = args.map(a => bare(a.asInstanceOf[Node]))
      // A LIKE with a long pattern has many conjuncts that differ only in their constants.
      "args" -> (if (node("op") == "and") own.distinct else own)
    case kept @ ("op" | "col" | "names", _) => kept
  }

  /**
   * The columns that a node uses as join keys or as a sort order, each with the kind of use, such as "shuffled join".
   */
  private def keysOf(node: SparkPlan): Seq[(ExprId, String)] = node match {
    case j: BroadcastHashJoinExec if leavesOut(j.joinType) =>
      val (build, keys) = if (j.buildSide == BuildLeft) (j.left, j.rightKeys) else (j.right, j.leftKeys)
      if (isFiltered(build)) attributes(keys, "join") else Nil
    case j: SortMergeJoinExec if leavesOut(j.joinType) => shuffled(j.left, j.leftKeys, j.right, j.rightKeys)
    case j: ShuffledHashJoinExec if leavesOut(j.joinType) => shuffled(j.left, j.leftKeys, j.right, j.rightKeys)
    case top: TakeOrderedAndProjectExec =>
      val columns = scanBelow(top.child).fold(Seq.empty[Attribute])(_.output).map(_.exprId).toSet
      attributes(top.sortOrder.take(1).map(_.child), "order by limit").filter(a => columns(a._1))
    case _ => Nil
  }

  private def leavesOut(kind: JoinType): Boolean = kind == Inner || kind == LeftSemi

  private def shuffled(
      left: SparkPlan, leftKeys: Seq[Expression], right: SparkPlan, rightKeys: Seq[Expression]) =
    (if (isFiltered(right)) attributes(leftKeys, "shuffled join") else Nil) ++
      (if (isFiltered(left)) attributes(rightKeys, "shuffled join") else Nil)

  private def attributes(keys: Seq[Expression], op: String): Seq[(ExprId, String)] =
    keys.collect { case a: AttributeReference => a.exprId -> op }

  /**
   * True if a side of a join has a filter. IS NOT NULL does not count, because Spark itself adds this filter on join
   * keys.
   */
  private def isFiltered(side: SparkPlan): Boolean = EndedScan.nodes(side).exists {
    case scan: FileSourceScanExec =>
      scan.partitionFilters.nonEmpty || scan.dataFilters.exists(!_.isInstanceOf[IsNotNull])
    case FilterExec(condition, child) =>
      scanBelow(child).exists(_.isInstanceOf[BatchScanExec]) &&
        splitConjunctivePredicates(condition).exists(!_.isInstanceOf[IsNotNull])
    case _ => false
  }

  /** The scan below a node, if the plan has only filters and projections between the node and the scan. */
  private def scanBelow(node: SparkPlan): Option[SparkPlan] = node match {
    case _: FileSourceScanExec | _: BatchScanExec => Some(node)
    case _ if EndedScan.isTransparent(node) => scanBelow(node.children.head)
    case _ => None
  }
}
