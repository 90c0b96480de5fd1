package org.apache.spark.sql.sieve

import java.util.Properties
import java.util.concurrent._
import java.util.concurrent.atomic.AtomicLong

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.SparkSession

/** The front end cannot be reached, or went away with a request in its hands. */
class FrontendDown(message: String) extends RuntimeException(message)

/**
 * Requests to the front end and its answers. The child opens no port: its threads call `take` on
 * the authenticated gateway and wait there. Two lanes, so that statements never hold up scans.
 */
object Link {
  val json = new ObjectMapper()
  // Longer texts are handed over in pieces: past 8 KB the gateway's reply waits 43 ms in the socket.
  private val piece = 7500
  private val ids = new AtomicLong
  private val lanes = Map(
    "scan" -> new LinkedBlockingQueue[Request], "statement" -> new LinkedBlockingQueue[Request])
  private val taken = new ConcurrentHashMap[Long, Request]

  final class Request(val lane: String, val body: String, val session: Compat.Session) {
    val id: Long = ids.incrementAndGet
    val tag: String = s"sieve-$id"
    val answer = new CompletableFuture[JsonNode]
    val locals: Properties = session.sparkContext.getLocalProperties.clone.asInstanceOf[Properties]
    @volatile var cancelled = false
  }

  // -- asking, on a thread of the driver ------------------------------------------------------

  /** Runs a statement and waits for its end; an interrupt cancels its jobs and is passed on. */
  def ask(session: Compat.Session, kind: String, fill: ObjectNode => Unit): JsonNode = {
    val runs = kind == "statement"
    val request = send(if (runs) "statement" else "scan", session, kind, fill)
    val wait = if (runs) Long.MaxValue else Settings.startMillis(session)
    try checked(await(request.answer, request, wait))
    catch {
      case e: FrontendDown => throw new SieveException("SIEVE_FRONT_END_DOWN", e.getMessage)
      case _: TimeoutException =>
        throw new SieveException("SIEVE_FRONT_END_DOWN", "the front end did not answer in " +
          s"${Settings.startMillis(session)} ms; see the driver's log")
      case e: InterruptedException =>
        request.cancelled = true
        session.sparkContext.cancelJobsWithTag(request.tag)
        // The statement cleans up after itself; give it the time to, then tell the caller.
        try request.answer.get(10, TimeUnit.SECONDS) catch { case _: Exception => }
        throw e
    }
  }

  /**
   * Asks on behalf of a scan: bounded by the prune deadline, or the longer one at a start. The
   * answer is made of the reply even when it comes too late to be waited for.
   */
  def prune[A](
      session: Compat.Session, kind: String, fill: ObjectNode => Unit, answer: JsonNode => A): A = {
    val wait =
      if (Frontend.ready) Settings.pruneMillis(session) else Settings.startMillis(session)
    val request = send("scan", session, kind, fill)
    val made = request.answer.thenApply[A](node => answer(checked(node)))
    await(made, request, wait)
  }

  /** Tells the front end something if it runs; nobody waits. */
  def event(session: Compat.Session, body: ObjectNode => Unit): Unit =
    if (Frontend.ready) lanes("scan").put(request("scan", session, "event", body))

  private def request(
      lane: String, session: Compat.Session, kind: String, fill: ObjectNode => Unit): Request = {
    val body = json.createObjectNode().put("kind", kind)
    fill(body)
    val settings = body.putObject("settings")
    session.sessionState.conf.getAllConfs.foreach { case (k, v) =>
      if (k.startsWith("spark.sieve.")) settings.put(k, v)
    }
    new Request(lane, json.writeValueAsString(body), session)
  }

  private def send(
      lane: String, session: Compat.Session, kind: String, fill: ObjectNode => Unit): Request = {
    Frontend.ensure(session)
    val made = request(lane, session, kind, fill)
    lanes(lane).put(made)
    made
  }

  private def await[A](answer: CompletableFuture[A], request: Request, millis: Long): A =
    try answer.get(millis, TimeUnit.MILLISECONDS)
    catch {
      case e: ExecutionException => throw e.getCause
      case e: TimeoutException => lanes(request.lane).remove(request); throw e
    }

  private def checked(node: JsonNode): JsonNode = {
    val error = node.get("error")
    if (error != null) {
      throw new SieveException(error.get("condition").asText, error.get("message").asText)
    }
    node
  }

  // -- answering, called by the child's threads through the gateway -----------------------------

  /** The next request as "id pieces\nfirst piece", or "" after `millis` without one. */
  def take(lane: String, millis: Long): String = {
    val request = lanes(lane).poll(math.min(millis, 1000L), TimeUnit.MILLISECONDS)
    if (request == null) ""
    else {
      taken.put(request.id, request)
      // The child works on this very thread: it takes over what the asking thread had set.
      val context = request.session.sparkContext
      context.setLocalProperties(request.locals)
      if (lane == "statement") context.addJobTag(request.tag)
      SparkSession.setActiveSession(request.session)
      val pieces = (request.body.length + piece - 1) / piece
      s"${request.id} $pieces\n${part(request, 0)}"
    }
  }

  def piece(id: Long, k: Int): String = part(taken.get(id), k)
  def session(id: Long): Compat.Session = taken.get(id).session
  def cancelled(id: Long): Boolean = Option(taken.get(id)).forall(_.cancelled)

  def answer(id: Long, text: String): Unit = {
    val request = taken.remove(id)
    if (request != null) {
      request.session.sparkContext.setLocalProperties(new Properties)
      SparkSession.clearActiveSession()
      request.answer.complete(json.readTree(text))
    }
  }

  private def part(request: Request, k: Int): String =
    request.body.substring(k * piece, math.min((k + 1) * piece, request.body.length))

  /** The child is gone: what it had taken fails at once, what it had not waits for the next one. */
  def abandon(why: String): Unit = taken.keySet.forEach { id =>
    val request = taken.remove(id)
    if (request != null) request.answer.completeExceptionally(new FrontendDown(why))
  }
}
