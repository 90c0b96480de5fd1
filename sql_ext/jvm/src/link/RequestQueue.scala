package org.apache.spark.sql.sieve

import java.util.Properties
import java.util.concurrent._
import java.util.concurrent.atomic.AtomicLong

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.SparkSession

/**
 * The front end cannot be reached, or went away with a request in its hands; `changing` if that had
 * come to changes that others see.
 */
class FrontendDown(message: String, val changing: Boolean = false) extends RuntimeException(message)

/** The front end went away before it had begun with the request: the next one may be given it. */
class Undelivered(message: String) extends FrontendDown(message)

/** What is asked, by whom, and where the answer will be. */
final class Request(val lane: String, val body: String, val session: Compat.Session) {
  val id: Long = Request.ids.incrementAndGet
  val tag: String = s"sieve-$id"
  val answer = new CompletableFuture[JsonNode]
  val locals: Properties = session.sparkContext.getLocalProperties.clone.asInstanceOf[Properties]
  @volatile var cancelled = false
  /** Whether the child may have changed something for it. */
  @volatile var begun = false
  /** Whether it may have changed what others see. */
  @volatile var changing = false
}

object Request {
  private val ids = new AtomicLong
}

object Lanes {
  private val taken = new ThreadLocal[String]

  /**
   * The lane for what a thread asks to be run. Threads of the child ask, too, when a query that they
   * have planned calls a function: if all threads of one lane waited for one of their own, none would
   * ever be free. Those that answer such a question ask none.
   */
  def forRuns(): String = Option(taken.get).fold("statement") {
    case "nested" => throw new SieveException("SIEVE_INVALID_ARGUMENT",
      "a function of Sieve may plan a query that calls such functions, but these no further one", state = "22023")
    case _ => "nested"
  }
}

/**
 * Requests to one child and its answers. The child opens no port: its threads call `take` on the
 * authenticated gateway and wait there. Scans, statements, functions in what these plan and
 * what nobody waits for have a lane each, so that none holds up another.
 */
final class Lanes {
  // Longer texts are handed over in pieces: past 8 KB the gateway's reply waits 43 ms in the socket.
  private val piece = 7500
  private val pool = "spark.scheduler.pool"
  private val waiting = Map(
    "scan" -> new LinkedBlockingQueue[Request], "statement" -> new LinkedBlockingQueue[Request],
    "nested" -> new LinkedBlockingQueue[Request], "background" -> new LinkedBlockingQueue[Request])
  private val taken = new ConcurrentHashMap[Long, Request]
  @volatile private var ended: Option[FrontendDown] = None

  // -- for those who ask ----------------------------------------------------------------------

  def put(request: Request): Unit = {
    waiting(request.lane).put(request)
    ended.foreach(failWaiting)
  }

  /** How many scans the child has not come to yet. */
  def scansWaiting: Int = waiting("scan").size

  /** Takes a request back; false if the child has it already. */
  def withdraw(request: Request): Boolean = waiting(request.lane).remove(request)

  /** The child is gone: all that asked it fail at once, with `end` where it had not begun. */
  def close(end: FrontendDown): Unit = {
    ended = Some(end)
    failWaiting(end)
    taken.keySet.forEach { id =>
      val request = taken.remove(id)
      if (request != null) {
        // Nobody is left to make use of what its jobs find.
        val context = request.session.sparkContext
        if (request.begun && !context.isStopped) context.cancelJobsWithTag(request.tag)
        request.answer.completeExceptionally(
          if (request.begun) new FrontendDown(end.getMessage, request.changing) else end)
      }
    }
  }

  private def failWaiting(end: FrontendDown): Unit = waiting.values.foreach { lane =>
    Iterator.continually(lane.poll()).takeWhile(_ != null)
      .foreach(_.answer.completeExceptionally(end))
  }

  // -- called by the child's threads through the gateway ----------------------------------------

  /** The next request as "id pieces\nfirst piece", or "" after `millis` without one. */
  def take(lane: String, millis: Long): String = {
    Lanes.taken.set(lane)
    val request = waiting(lane).poll(math.min(millis, 1000L), TimeUnit.MILLISECONDS)
    if (request == null) ""
    else {
      taken.put(request.id, request)
      // The end may have come between the two lines above, and passed this request by.
      ended.foreach(end => if (taken.remove(request.id) != null) request.answer.completeExceptionally(end))
      // The child works on this very thread: it takes over what the asking thread had set.
      val context = request.session.sparkContext
      context.setLocalProperties(request.locals)
      if (lane != "scan") {
        context.addJobTag(request.tag)
        // Where the scheduler is fair, queries need not wait until a build has read its last file.
        if (context.getLocalProperty(pool) == null) context.setLocalProperty(pool, "sieve")
      }
      SparkSession.setActiveSession(request.session)
      val pieces = (request.body.length + piece - 1) / piece
      s"${request.id} $pieces\n${part(request, 0)}"
    }
  }

  def piece(id: Long, k: Int): String = part(taken.get(id), k)
  /** The session of the user who asked; nothing can be changed without it. */
  def session(id: Long): Compat.Session = {
    val request = taken.get(id)
    if (request.lane != "scan") request.begun = true
    request.session
  }
  def changing(id: Long): Unit = Option(taken.get(id)).foreach(_.changing = true)
  def cancelled(id: Long): Boolean = Option(taken.get(id)).forall(_.cancelled)

  def answer(id: Long, text: String): Unit = {
    val request = taken.remove(id)
    if (request != null) {
      request.session.sparkContext.setLocalProperties(new Properties)
      SparkSession.clearActiveSession()
      request.answer.complete(Link.json.readTree(text))
    }
  }

  private def part(request: Request, k: Int): String =
    request.body.substring(k * piece, math.min((k + 1) * piece, request.body.length))
}
