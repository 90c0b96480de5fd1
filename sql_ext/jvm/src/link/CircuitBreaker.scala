package org.apache.spark.sql.sieve

import java.util.concurrent.TimeoutException

import scala.util.control.NonFatal

/**
 * Keeps scans from waiting for a front end that has been too slow time and again: after three
 * time-outs in a row they go ahead unpruned, and now and then one of them finds out whether it
 * answers again (Nygard, "Release It!": circuit breaker).
 */
object Breaker {
  private val most = 3
  private val shortest = 2000L
  private val longest = 60000L
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
        synchronized {
          // Of many that waited together the third opens it, and the rest tell nothing new.
          if (probes || failures < most) {
            failures += 1
            closedUntil = System.currentTimeMillis + pause
          }
        }
        throw e
      case e: InterruptedException =>
        // Nobody knows whether it would have answered; the next one finds out.
        synchronized { closedUntil = 0L }
        throw e
      case NonFatal(e) =>
        // Whatever went wrong, it went wrong in time.
        reset()
        throw e
    }
  }

  /** Whether scans do not wait for it. */
  def isOpen: Boolean = synchronized { failures >= most }

  /** Nothing is held against a front end that has just come. */
  def reset(): Unit = synchronized { failures = 0 }

  /** Refuses at once while nobody is to wait; when it is time to try, lets one through and says so. */
  private def enter(): Boolean = synchronized {
    val open = failures >= most
    if (open) {
      val now = System.currentTimeMillis
      if (now < closedUntil) throw new TimeoutException(
        s"it was too slow $failures times in a row; scans ask again in ${closedUntil - now} ms")
      closedUntil = now + longest
    }
    open
  }

  private def pause: Long = math.min(longest, shortest << math.min(math.max(0, failures - most), 5))
}
