package org.apache.spark.sql.sieve.ask

import java.util.concurrent.TimeoutException
import scala.util.control.NonFatal

/**
 * Prevents scans from waiting for a front end that was too slow several times in a row. While the circuit is open,
 * scans read without an index. From time to time, one scan tests whether the front end answers again (Nygard, "Release
 * It!": circuit breaker). If a front end hangs, three scans wait until the time-out (500 ms). Later, only one scan
 * waits after each pause, and the pauses grow from 2 seconds to one minute. Without the breaker, every scan would wait
 * until the time-out.
 */
object CircuitBreaker {
  private val threshold = 3
  private val (firstPause, longest) = (2000L, 60000L)
  private var failures = 0
  private var closedUntil = 0L

  def guard[A](call: => A): A = {
    val probes = enter()
    try {
      val answer = call
      reset()
      answer
    } catch {
      case e: TimeoutException =>
        // While the circuit is open, only a time-out of a scan that tests the front end counts as a failure. Time-outs
        // of scans that began earlier do not count.
        synchronized(if (probes || failures < threshold) {
          failures += 1
          closedUntil = System.currentTimeMillis + Backoff.millis(
            firstPause, failures - threshold, longest)
        })
        throw e
      case e: InterruptedException =>
        // An interrupted test of the front end has no result, so the next scan may test the front end at once.
        synchronized { closedUntil = 0L }
        throw e
      case NonFatal(e) =>
        // The call failed before the time-out, so the front end is not too slow.
        reset()
        throw e
    }
  }

  /** True while the circuit is open, so that scans do not wait for the front end. */
  def isOpen: Boolean = synchronized { failures >= threshold }

  /**
   * Closes the circuit. The driver calls this method when an answer arrives in time, and when a new front end connects.
   */
  def reset(): Unit = synchronized { failures = 0 }

  /**
   * Returns false while the circuit is closed. While the circuit is open, one scan after each pause gets true and tests
   * the front end. For all other scans, this method throws a TimeoutException.
   */
  private def enter(): Boolean = synchronized {
    val open = isOpen
    if (open) {
      val now = System.currentTimeMillis
      if (now < closedUntil) throw new TimeoutException(
        s"it was too slow $failures times in a row; scans ask again in ${closedUntil - now} ms")
      closedUntil = now + longest
    }
    open
  }
}

/** Computes the pause between attempts. Each further failure doubles the pause, up to a maximum. */
object Backoff {
  def millis(first: Long, doublings: Long, longest: Long): Long =
    math.min(longest, first << math.min(math.max(0L, doublings), 16L))
}
