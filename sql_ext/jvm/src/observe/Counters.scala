package org.apache.spark.sql.sieve

import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.{AtomicLong, AtomicLongArray, LongAccumulator, LongAdder}

import scala.collection.immutable.ListMap

import org.apache.spark.sql.execution.datasources.PartitionDirectory

/** What has happened in this driver since its start: a fixed number of sums. */
object Counters {
  /** All reasons there are why an index is not used. */
  val reasons: Seq[String] = Seq(
    "no-index", "root-refused", "disabled", "no-predicate", "unsupported-predicate", "new-file", "changed-file",
    "unsettled-file", "reader-changed", "index-gone", "index-corrupt", "version-too-new", "version-too-old",
    "timeout", "front-end-down", "error")
  private val unused = ListMap(reasons.map(_ -> new LongAdder): _*)

  private val scans, pruned, listed, skipped, nanos, audits, reread = new LongAdder
  private val longest = new LongAccumulator((a, b) => math.max(a, b), 0L)
  private val calls = new AtomicLong
  /** Nanoseconds of the latest prune calls; 0 where there was none yet. */
  private val latest = new AtomicLongArray(256)
  val frontEndStarts, statements = new LongAdder

  /** Runs a prune call, however it ends, of which a part took so many nanoseconds before. */
  def timed[A](before: Long)(call: => A): A = {
    val start = System.nanoTime - before
    try call
    finally {
      val took = System.nanoTime - start
      latest.set(Math.floorMod(calls.getAndIncrement(), latest.length.toLong).toInt, took)
      nanos.add(took)
      longest.accumulate(took)
    }
  }

  /** The files of an indexed table have been listed for a scan; how many of them it skips. */
  def scanned(result: Pruned): Long = {
    val (kept, left) = (files(result.kept), files(result.skipped))
    scans.increment()
    if (left > 0) pruned.increment()
    listed.add(kept + left)
    skipped.add(left)
    result.reasons.keys.foreach(reason => unused.get(reason).foreach(_.increment()))
    left
  }

  /** The files that a scan skips have been read again. */
  def audited(result: Pruned): Unit = {
    audits.increment()
    reread.add(files(result.skipped))
  }

  /** Milliseconds, rounded up, within which so large a share of the latest prune calls ended. */
  private def within(share: Double): Long = {
    val sorted = Seq.tabulate(latest.length)(latest.get).filter(_ > 0).sorted
    if (sorted.isEmpty) 0L
    else math.ceil(sorted(math.ceil(share * sorted.size).toInt - 1) / 1e6).toLong
  }

  private def files(directories: Seq[PartitionDirectory]): Long =
    directories.map(_.files.size.toLong).sum

  /** All of them in a fixed order: [name, reason or null, value]. */
  def json: String = {
    val array = Link.json.createArrayNode
    def put(name: String, value: Long, reason: String = null): Unit =
      array.addArray().add(name).add(reason).add(value)
    put("scans", scans.sum)
    put("scans_pruned", pruned.sum)
    put("files_listed", listed.sum)
    put("files_skipped", skipped.sum)
    unused.foreach { case (reason, times) => put("index_not_used", times.sum, reason) }
    put("prune_calls", calls.get)
    put("prune_ms", TimeUnit.NANOSECONDS.toMillis(nanos.sum))
    put("prune_ms_p50", within(0.5))
    put("prune_ms_p95", within(0.95))
    put("prune_ms_greatest", TimeUnit.NANOSECONDS.toMillis(longest.get))
    put("scans_audited", audits.sum)
    put("files_audited", reread.sum)
    put("front_end_starts", frontEndStarts.sum)
    put("statements", statements.sum)
    Link.json.writeValueAsString(array)
  }
}
