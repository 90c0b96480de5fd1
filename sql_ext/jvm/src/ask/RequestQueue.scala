package org.apache.spark.sql.sieve.ask

import java.util.Properties
import java.util.concurrent._
import java.util.concurrent.atomic.AtomicLong
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.sieve.base.{Compat, Json, Policy, SieveException}

/**
 * The front end cannot be reached, or went away while it worked on a request; `changing` if it may have
 * changed what others see.
 */
class FrontendDown(message: String, val changing: Boolean = false) extends RuntimeException(message)

/** The front end went away before it had begun with the request: the next one may be given it. */
class Undelivered(message: String) extends FrontendDown(message)

/** A question, the session that asks it, and a future for its answer. */
final class Request(val queue: String, val body: String, val session: Compat.Session) {
  val id: Long = Request.ids.incrementAndGet
  val tag: String = s"sieve-$id"
  val answer = new CompletableFuture[JsonNode]
  val locals: Properties = session.sparkContext.getLocalProperties.clone.asInstanceOf[Properties]
  @volatile var cancelled = false
  /** Whether the front end may have changed something for it. */
  @volatile var begun = false
  /** Whether it may have changed what others see. */
  @volatile var changing = false
  def isScan: Boolean = queue == "scan"
}

object Request {
  private val ids = new AtomicLong
}

object RequestQueue {
  private val queueOfThread = new ThreadLocal[String]

  /**
   * The queue for what a thread asks to be run. Threads of the front end ask, too, when a query that they
   * plan calls a function: if all threads of one queue waited for one of their own, none would ever
   * be free. Those that answer such a question ask none.
   */
  def forRuns(): String = Option(queueOfThread.get).fold("statement") {
    case "nested" => throw new SieveException("SIEVE_INVALID_ARGUMENT",
      "a function of Sieve may plan a query that calls such functions, but these no further one", state = "22023")
    case _ => "nested"
  }
}

/**
 * Requests to one front end and its answers. The front end opens no port: its threads call `take` on the
 * authenticated gateway and wait there. Scans, statements, functions in queries that these plan, and
 * background work have a queue each, so that none holds up another.
 */
final class RequestQueue {
  // Past 8 KB the gateway's reply waits 43 ms in the socket, so longer texts go in pieces.
  private val pieceLength = Policy.limit("piece_characters").toInt
  private val pool = "spark.scheduler.pool"
  private val waiting = Policy.texts("/queues").map(_ -> new LinkedBlockingQueue[Request]).toMap
  private val taken = new ConcurrentHashMap[Long, Request]
  @volatile private var ended: Option[FrontendDown] = None

  // -- for those who ask ----------------------------------------------------------------------

  def put(request: Request): Unit = {
    waiting(request.queue).put(request)
    ended.foreach(failWaiting)
  }

  /** Scans that no thread of the front end has taken yet. */
  def scansWaiting: Int = waiting("scan").size

  /** Takes a request back; false if the front end has it already. */
  def withdraw(request: Request): Boolean = waiting(request.queue).remove(request)

  /** The front end is gone: all requests fail at once, with `end` where it had not begun. */
  def close(end: FrontendDown): Unit = {
    ended = Some(end)
    failWaiting(end)
    taken.keySet.forEach { id =>
      Option(taken.remove(id)).foreach { request =>
        // Nobody is left to make use of what its jobs find.
        val context = request.session.sparkContext
        if (request.begun && !context.isStopped) context.cancelJobsWithTag(request.tag)
        request.answer.completeExceptionally(
          if (request.begun) new FrontendDown(end.getMessage, request.changing) else end)
      }
    }
  }

  private def failWaiting(end: FrontendDown): Unit = waiting.values.foreach { queue =>
    Iterator.continually(queue.poll()).takeWhile(_ != null).foreach(_.answer.completeExceptionally(end))
  }

  // -- called by the front end's threads through the gateway --------------------------------------

  /** The next request as "id pieces\nfirst piece", or "" after `millis` without one. */
  def take(queue: String, millis: Long): String = {
    RequestQueue.queueOfThread.set(queue)
    val request = waiting(queue).poll(millis, TimeUnit.MILLISECONDS)
    if (request == null) ""
    else {
      taken.put(request.id, request)
      // The end may have come between the two lines above, and passed this request by.
      ended.foreach(end => if (taken.remove(request.id) != null) request.answer.completeExceptionally(end))
      // The front end works on this very thread: it takes over what the asking thread had set.
      val context = request.session.sparkContext
      context.setLocalProperties(request.locals)
      if (!request.isScan) {
        context.addJobTag(request.tag)
        // Where the scheduler is fair, queries need not wait until a build has read its last file.
        if (context.getLocalProperty(pool) == null) context.setLocalProperty(pool, "sieve")
      }
      SparkSession.setActiveSession(request.session)
      val pieces = (request.body.length + pieceLength - 1) / pieceLength
      s"${request.id} $pieces\n${piece(request, 0)}"
    }
  }

  def piece(id: Long, k: Int): String = piece(taken.get(id), k)

  private def piece(request: Request, k: Int): String =
    request.body.substring(k * pieceLength, math.min((k + 1) * pieceLength, request.body.length))

  /** The session of the user who asked; nothing can be changed without it. */
  def session(id: Long): Compat.Session = {
    val request = taken.get(id)
    if (!request.isScan) request.begun = true
    request.session
  }

  def changing(id: Long): Unit = Option(taken.get(id)).foreach(_.changing = true)
  def cancelled(id: Long): Boolean = Option(taken.get(id)).forall(_.cancelled)

  def answer(id: Long, text: String): Unit = Option(taken.remove(id)).foreach { request =>
    request.session.sparkContext.setLocalProperties(new Properties)
    SparkSession.clearActiveSession()
    request.answer.complete(Json.read(text))
  }
}
