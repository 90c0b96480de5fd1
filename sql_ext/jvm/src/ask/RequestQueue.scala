package org.apache.spark.sql.sieve.ask

import java.util.Properties
import java.util.concurrent._
import java.util.concurrent.atomic.AtomicLong
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.sieve.base.{Compat, Json, SieveException}

/**
 * The front end cannot be reached, or has ended during a request. `changing` is true if the request may have changed
 * data that other sessions see.
 */
class FrontendDown(message: String, val changing: Boolean = false) extends RuntimeException(message)

/** The front end ended before it began the request, so the next front end can process the request. */
class Undelivered(message: String) extends FrontendDown(message)

/** A request, with the session that sends it and a future for the answer. */
final class Request(val queue: String, val body: String, val session: Compat.Session) {
  val id: Long = Request.ids.incrementAndGet
  val tag: String = s"sieve-$id"
  val answer = new CompletableFuture[JsonNode]
  val locals: Properties = session.sparkContext.getLocalProperties.clone.asInstanceOf[Properties]
  @volatile var cancelled = false
  /** True once the front end has begun the request, and so may have changed something. */
  @volatile var begun = false
  /** True once the front end has announced that this request changes data that other sessions see. */
  @volatile var changing = false
  def isScan: Boolean = queue == "scan"
}

object Request {
  private val ids = new AtomicLong
}

object RequestQueue {
  private val queueOfThread = new ThreadLocal[String]

  /**
   * Returns the queue for a request that runs a statement or function. A thread of the front end also sends requests,
   * when it plans a query that calls a function of Sieve. If all threads of a queue waited for requests in the same
   * queue, no thread would ever become free. So requests from the front end's threads go into the queue "nested", and
   * the threads that serve "nested" may send no requests.
   */
  def forRuns(): String = Option(queueOfThread.get).fold("statement") {
    case "nested" => throw new SieveException("SIEVE_INVALID_ARGUMENT",
      "the query in an argument of a Sieve function calls a Sieve function whose argument has a query, too", state = "22023")
    case _ => "nested"
  }
}

/**
 * The requests to one front end, and the front end's answers. The front end opens no port. The front end's threads call
 * `take` through the authenticated gateway, and wait in this call for a request. Scans, statements, functions inside
 * statements, and background work have separate queues, so that no kind of work delays another.
 */
final class RequestQueue {
  /**
   * The maximum number of characters in a piece of a request. The gateway's socket delays a reply of more than 8 KB by
   * 43 ms. So only a long request has pieces of more than 8 KB.
   */
  private def pieceLength(request: Request): Int = if (request.body.length < 500000) 7500 else 2000000
  private val pool = "spark.scheduler.pool"
  private val queues = new ConcurrentHashMap[String, LinkedBlockingQueue[Request]]
  private def waiting(name: String) = queues.computeIfAbsent(name, _ => new LinkedBlockingQueue[Request])
  private val taken = new ConcurrentHashMap[Long, Request]
  @volatile private var ended: Option[FrontendDown] = None

  // -- for senders of requests ---------------------------------------------------------------------

  def put(request: Request): Unit = {
    waiting(request.queue).put(request)
    ended.foreach(failWaiting)
  }

  /** The number of scan requests that no thread of the front end has taken yet. */
  def scansWaiting: Int = waiting("scan").size

  /** Removes a request from its queue. Returns false if the front end has already taken the request. */
  def withdraw(request: Request): Boolean = waiting(request.queue).remove(request)

  /**
   * Fails all requests after the front end has ended. If the front end has begun a request, the request's error tells
   * whether the request may have changed data. All other requests fail with `end`.
   */
  def close(end: FrontendDown): Unit = {
    ended = Some(end)
    failWaiting(end)
    taken.keySet.forEach { id =>
      Option(taken.remove(id)).foreach { request =>
        // Cancels the jobs of the request, because no caller waits for their results any more.
        val context = request.session.sparkContext
        if (request.begun && !context.isStopped) context.cancelJobsWithTag(request.tag)
        request.answer.completeExceptionally(
          if (request.begun) new FrontendDown(end.getMessage, request.changing) else end)
      }
    }
  }

  private def failWaiting(end: FrontendDown): Unit = queues.values.forEach { queue =>
    Iterator.continually(queue.poll()).takeWhile(_ != null).foreach(_.answer.completeExceptionally(end))
  }

  // -- called by the front end's threads through the gateway --------------------------------------

  /**
   * Returns the next request as text: a line with the request's id and the number of its pieces, followed by the first
   * piece. Returns "" if no request arrives within `millis` milliseconds.
   */
  def take(queue: String, millis: Long): String = {
    RequestQueue.queueOfThread.set(queue)
    val request = waiting(queue).poll(millis, TimeUnit.MILLISECONDS)
    if (request == null) ""
    else {
      taken.put(request.id, request)
      // If the front end ended after `poll` and before `put`, `close` has not seen this request, so the request must
      // fail here.
      ended.foreach(end => if (taken.remove(request.id) != null) request.answer.completeExceptionally(end))
      // This thread now works for the sender of the request, so it adopts the local properties that Spark had for the
      // sender's thread.
      val context = request.session.sparkContext
      context.setLocalProperties(request.locals)
      if (!request.isScan) {
        context.addJobTag(request.tag)
        // With Spark's fair scheduler, a build's jobs run in their own pool, so queries need not wait for the end of
        // the build.
        if (context.getLocalProperty(pool) == null) context.setLocalProperty(pool, "sieve")
      }
      SparkSession.setActiveSession(request.session)
      val length = pieceLength(request)
      val pieces = (request.body.length + length - 1) / length
      s"${request.id} $pieces\n${piece(request, 0)}"
    }
  }

  def piece(id: Long, k: Int): String = piece(taken.get(id), k)

  private def piece(request: Request, k: Int): String = {
    val length = pieceLength(request)
    request.body.substring(k * length, math.min((k + 1) * length, request.body.length))
  }

  /**
   * Returns the session of the user who sent the request. Also marks the request as begun, but leaves requests of scans
   * unmarked. A request can change data only through this session.
   */
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
