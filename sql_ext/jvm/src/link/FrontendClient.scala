package org.apache.spark.sql.sieve

import java.util.concurrent._

import scala.util.{Failure, Success, Try}

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode

/** A request, and the child that it was given to. */
final case class Asked(child: Child, request: Request)

/** How threads of the driver ask the front end, and how long they wait for it. */
object Link {
  val json = new ObjectMapper()

  /** Runs a statement or function to its end; an interrupt cancels its jobs and is passed on. */
  def ask(session: Compat.Session, kind: String, fill: ObjectNode => Unit): JsonNode = {
    val runs = kind != "parse"
    val start = Settings.startMillis(session)
    if (kind == "statement") Counters.statements.increment()
    if (runs) Events.settled(session)
    try again {
      // Somebody waits for it, so no pause is kept after a child that failed.
      val child = Frontend.ensure(session, atOnce = true)
      val asked = request(if (runs) Lanes.forRuns() else "scan", session, kind, fill)
      child.lanes.put(asked)
      try checked(await(asked.answer, if (runs) Long.MaxValue else start))
      catch { case e: InterruptedException => cancel(child, asked); throw e }
    } catch {
      case e: FrontendDown if e.changing =>
        throw new SieveException("SIEVE_STATEMENT_UNKNOWN_OUTCOME",
          s"${e.getMessage}. Whether this one took effect is unknown: each index is as before it or " +
            "as after it, which SHOW SIEVE VERSIONS tells. Run the statement again", state = "08007")
      case e: FrontendDown => throw down(e.getMessage)
      case _: TimeoutException => throw down(
        s"the front end did not answer in $start ms (spark.sieve.start.timeout); see the driver's log")
    }
  }

  private def down(why: String) = new SieveException(
    "SIEVE_FRONT_END_DOWN", s"$why. Nothing was changed: run the statement again", state = "08006")

  private def cancel(child: Child, asked: Request): Unit =
    if (!child.lanes.withdraw(asked)) {
      asked.cancelled = true
      asked.session.sparkContext.cancelJobsWithTag(asked.tag)
      // The statement cleans up after itself; give it the time to, then tell the caller.
      try asked.answer.get(10, TimeUnit.SECONDS) catch { case _: Exception => }
    }

  /** Asks for a scan that has other things to do first; None where that would be waited for. */
  def ahead(session: Compat.Session, body: String): Option[Asked] =
    Frontend.running.filter(_.lanes.scansWaiting < mostAhead).map(put(_, session, body))

  // A child that does not answer must not be sent more and more that nobody may come to wait for.
  private val mostAhead = 64

  private def put(child: Child, session: Compat.Session, body: String): Asked = {
    val asked = new Request("scan", body, session)
    child.lanes.put(asked)
    Asked(child, asked)
  }

  /**
   * Asks on behalf of a scan: bounded by the prune deadline, or the longer one at a start. The
   * answer is made of the reply even when it comes too late to be waited for; `ahead` is what may
   * have been asked before, if that is the very same.
   */
  def prune[A](
      session: Compat.Session, body: String, ahead: Option[Asked], answer: JsonNode => A): A = {
    var before = ahead.filter(_.request.body == body)
    if (before.isEmpty) ahead.foreach(other => other.child.lanes.withdraw(other.request))
    again {
      val Asked(child, asked) =
        before.getOrElse(put(Frontend.ensure(session, atOnce = false), session, body))
      before = None
      val made = asked.answer.thenApply[A](node => answer(checked(node)))
      val starting = if (child.ready || !child.awaited) 0L else Settings.startMillis(session) - child.ageMillis
      try await(made, math.max(Settings.pruneMillis(session), starting))
      catch { case e: TimeoutException => child.lanes.withdraw(asked); throw e }
    }
  }

  /** Tells the front end what has happened to a table, and waits until that is seen to. */
  def tell(session: Compat.Session, fill: ObjectNode => Unit): Unit = again {
    val (child, asked) = event("statement", session, fill)
    try checked(await(asked.answer, 60000L))
    catch { case e: TimeoutException => child.lanes.withdraw(asked); throw e }
  }

  /**
   * The same, for work that takes as long as it takes; `done` gets the answer. Gives what tells whether
   * the work has begun.
   */
  def post(
      session: Compat.Session, fill: ObjectNode => Unit, done: Try[JsonNode] => Unit): () => Boolean = {
    val (_, asked) = event("background", session, fill)
    asked.answer.whenComplete((node, failure) => done(if (failure == null) Success(node) else Failure(failure)))
    () => asked.begun || asked.answer.isDone
  }

  private def event(
      lane: String, session: Compat.Session, fill: ObjectNode => Unit): (Child, Request) = {
    val asked = request(lane, session, "event", fill)
    val child = Frontend.ensure(session, atOnce = false)
    child.lanes.put(asked)
    (child, asked)
  }

  /** A request that a dying child had not seen yet is given to the next one, once. */
  private def again[A](exchange: => A): A =
    try exchange catch { case _: Undelivered => exchange }

  private def request(
      lane: String, session: Compat.Session, kind: String, fill: ObjectNode => Unit): Request =
    new Request(lane, body(session, kind, fill), session)

  /** What a request says: the session's settings of Sieve, and what `fill` puts there. */
  def body(session: Compat.Session, kind: String, fill: ObjectNode => Unit): String = {
    val body = json.createObjectNode().put("kind", kind)
    fill(body)
    val settings = body.putObject("settings")
    Settings.of(session).foreach { case (k, v) => settings.put(k, v) }
    json.writeValueAsString(body)
  }

  private def await[A](answer: CompletableFuture[A], millis: Long): A =
    try answer.get(millis, TimeUnit.MILLISECONDS)
    catch { case e: ExecutionException => throw e.getCause }

  private def checked(node: JsonNode): JsonNode = {
    val error = node.get("error")
    if (error != null) {
      throw new SieveException(error.get("condition").asText, error.get("message").asText,
        state = error.get("sql_state").asText)
    }
    node
  }
}
