package org.apache.spark.sql.sieve.ask

import java.util.concurrent.TimeoutException
import scala.util.control.NonFatal

/**
 * Prevents scans from waiting for a front end that was too slow several times in a row. While the circuit is open,
 * scans read without an index. From time to time, one scan tests whether the front end answers again (Nygard, "Release
 * It!": circuit breaker). With the breaker, a hanging front end delays three scans by the time-out (500 ms), and later
 * one scan per minute. Without the breaker, a hanging front end would delay every scan.
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
        // If many scans time out at the same time, only the first time-outs, up to the threshold, count as failures.
        synchronized(if (probes || failures < threshold) {
          failures += 1
          closedUntil = System.currentTimeMillis + Backoff.millis(
            firstPause, failures - threshold, longest)
        })
        throw e
      case e: InterruptedException =>
        // Nobody knows whether the front end would have answered, so the next scan tests the front end.
        synchronized { closedUntil = 0L }
        throw e
      case NonFatal(e) =>
        // The front end answered in time with an error, so the front end is not too slow.
        reset()
        throw e
    }
  }

  /** True while scans do not wait for the front end. */
  def isOpen: Boolean = synchronized { failures >= threshold }

  /** Closes the circuit. A new front end starts without the failures of the former one. */
  def reset(): Unit = synchronized { failures = 0 }

  /**
   * Throws an exception at once while the circuit is open. If the next test of the front end is due, lets one scan pass
   * as the test and returns true.
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

/** Pauses between attempts. Each successive failure doubles the pause. */
object Backoff {
  def millis(first: Long, doublings: Long, longest: Long): Long =
    math.min(longest, first << math.min(math.max(0L, doublings), 16L))
}
