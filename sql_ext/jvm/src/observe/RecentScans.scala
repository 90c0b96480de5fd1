package org.apache.spark.sql.sieve.observe

import scala.collection.immutable.Queue
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.sieve.ask.Pruned
import org.apache.spark.sql.sieve.base.{Failure, Reason}
import org.apache.spark.sql.sieve.plan.{Listing, ListingObserver, SieveFileIndex}
import org.apache.spark.sql.types.DataType

/** The latest scans of indexed tables in this driver, as readable text. The text contains no constants of filters. */
object RecentScans extends ListingObserver {
  private val longest = 2000
  private var latest = Queue.empty[Map[String, Any]]

  override def listed(index: SieveFileIndex, listing: Listing): Unit = {
    import listing.{filters, millis, pruned}
    val (read, skipped) = (Pruned.files(pruned.remaining), pruned.filesSkipped)
    val scan = Map(
      "at" -> System.currentTimeMillis, "table" -> index.table.identifier.unquotedString,
      "execution" -> Option(index.executing.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)),
      "predicate" -> text(filters),
      "files" -> (read + skipped), "files_skipped" -> skipped, "ranges" -> pruned.ranges.total,
      "ranges_skipped" -> (pruned.ranges.total - pruned.ranges.read), "bytes_skipped" -> pruned.bytesSkipped,
      "used" -> pruned.used, "reasons" -> Reason.named(pruned.reasons),
      "functions" -> pruned.functions, "ms" -> millis)
    synchronized { latest = (latest :+ scan).takeRight(50) }
  }

  /** All recorded scans. The latest scan is first. */
  def all: Seq[Map[String, Any]] = synchronized(latest).reverse

  /**
   * The filters as readable text. If an expression cannot be converted to text, the result is empty, because the query
   * must not fail.
   */
  private def text(filters: Seq[Expression]): String =
    try filters.map(withoutConstants(_).sql).mkString(" AND ").take(longest)
    catch { case Failure() => "" }

  private def withoutConstants(filter: Expression): Expression = filter.transform {
    case In(value, _) => In(value, Seq(AnyConstant(value.dataType)))
    case InSet(value, _) => In(value, Seq(AnyConstant(value.dataType)))
    case a: AttributeReference => a.withQualifier(Nil)
    case constant: Literal => AnyConstant(constant.dataType)
  }
}

/** A placeholder for a constant in the text of a filter. People who read the text must not see the constant. */
private case class AnyConstant(dataType: DataType) extends LeafExpression with Unevaluable {
  override def nullable: Boolean = true
  override def sql: String = "?"
}
