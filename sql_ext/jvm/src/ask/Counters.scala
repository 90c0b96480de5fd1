package org.apache.spark.sql.sieve.ask

import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.{AtomicLong, AtomicLongArray, LongAccumulator, LongAdder}
import scala.jdk.CollectionConverters._
import org.apache.spark.sql.sieve.base.Reason.Reason
import org.apache.spark.sql.sieve.base.{Json, LruMap, Reason}

/** Counts events in this driver since the driver's start. The number of different counters is limited. */
object Counters {
  private val unused = Reason.values.toSeq.map(_ -> new LongAdder)
  /** For each function that no index can evaluate, the number of scans whose filters call this function. */
  private val functions = new LruMap[String, Long](100)
  private val scans, pruned, atRunTime, listed, skipped, ranges, rangesSkipped, bytesSkipped = new LongAdder
  private val nanos, audits, reread, keys, nanosForKeys = new LongAdder
  private val longest = new LongAccumulator((a, b) => math.max(a, b), 0L)
  private val calls = new AtomicLong
  /**
   * The durations of the latest prune calls, in nanoseconds. In a prune call, a scan asks the front end which files to
   * skip. Unused slots contain 0.
   */
  private val latest = new AtomicLongArray(256)
  val frontEndStarts, statements = new LongAdder

  /**
   * Runs a prune call and records its duration, even if the call fails. The duration includes `before` nanoseconds that
   * the caller has already spent on the call.
   */
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

  /** Adds a scan of an indexed table to the counters. */
  def scanned(result: Pruned): Unit = {
    val left = result.filesSkipped
    scans.increment()
    if (result.skipped.nonEmpty) pruned.increment()
    listed.add(Pruned.files(result.remaining) + left)
    skipped.add(left)
    ranges.add(result.ranges.total)
    rangesSkipped.add(result.ranges.total - result.ranges.read)
    bytesSkipped.add(result.bytesSkipped)
    unused.foreach { case (reason, times) => if (result.reasons.contains(reason)) times.increment() }
    result.functions.foreach(name => functions.synchronized(functions.merge(name, 1L, _ + _)))
  }

  /**
   * Counts a scan that received run-time values, such as the keys of a join. `received` is the number of these values.
   */
  def resolved(received: Long): Unit = {
    atRunTime.increment()
    keys.add(received)
  }

  /** Adds the time in nanoseconds that a scan waited for run-time values. */
  def waited(forKeys: Long): Unit = nanosForKeys.add(forKeys)

  /** Counts a scan that could use join keys, by the reason why the scan receives no keys. */
  def refused(reason: Reason.Reason): Unit = unused.foreach { case (own, times) => if (own == reason) times.increment() }

  /** Counts a scan for which an audit has read the skipped files and ranges. */
  def audited(result: Pruned): Unit = {
    audits.increment()
    reread.add(Pruned.files(result.skipped))
  }

  /**
   * A quantile of the latest prune calls' durations, in milliseconds, rounded up. `share` is the fraction of the calls
   * that took at most the returned time.
   */
  private def within(share: Double): Long = {
    val sorted = Seq.tabulate(latest.length)(latest.get).filter(_ > 0).sorted
    if (sorted.isEmpty) 0L else math.ceil(sorted(math.ceil(share * sorted.size).toInt - 1) / 1e6).toLong
  }

  private def millis(nanos: Long): Long = TimeUnit.NANOSECONDS.toMillis(nanos)

  /** All counters as JSON, in a fixed order. The JSON is a list of [name, reason or null, value]. */
  def json: String = Json.write(Seq(
    "scans" -> scans.sum, "scans_pruned" -> pruned.sum,
    "scans_at_run_time" -> atRunTime.sum, "keys_received" -> keys.sum,
    "key_wait_ms" -> millis(nanosForKeys.sum), "files_listed" -> listed.sum,
    "files_skipped" -> skipped.sum, "ranges_listed" -> ranges.sum,
    "ranges_skipped" -> rangesSkipped.sum, "bytes_skipped" -> bytesSkipped.sum).map(counter) ++
    unused.map { case (reason, times) => Seq("index_not_used", reason.toString, times.sum) } ++
    functions.synchronized(functions.asScala.toSeq.sorted)
      .map { case (name, times) => Seq("unsupported_function", name, times) } ++ Seq(
    "prune_calls" -> calls.get, "prune_ms" -> millis(nanos.sum),
    "prune_ms_p50" -> within(0.5), "prune_ms_p95" -> within(0.95),
    "prune_ms_greatest" -> millis(longest.get), "scans_audited" -> audits.sum,
    "files_audited" -> reread.sum, "front_end_starts" -> frontEndStarts.sum,
    "statements" -> statements.sum).map(counter))

  private def counter(named: (String, Long)): Seq[Any] = Seq(named._1, null, named._2)
}
