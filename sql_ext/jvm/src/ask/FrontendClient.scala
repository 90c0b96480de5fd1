package org.apache.spark.sql.sieve.ask

import java.util.concurrent._
import scala.util.{Failure, Success, Try}
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.sieve.base.{Compat, Json, Settings, SieveException}

/** A request, and the front end to which it was sent. */
final case class Sent(process: FrontendProcess, request: Request)

/**
 * Sends requests from the driver's threads to the front end. The method `patience` determines how long a call waits for
 * its answer, except in `page`.
 */
object FrontendClient {
  /**
   * Makes the front end parse or run a statement, or call a function, and waits for the result. If the calling thread
   * is interrupted, this method cancels the request's jobs and throws the InterruptedException again.
   */
  def ask(session: Compat.Session, kind: String, fields: => Map[String, Any]): JsonNode = {
    val runs = kind != "parse"
    if (kind == "statement") Counters.statements.increment()
    try exchange(identity[JsonNode], patience(session, kind)) {
      val queue = if (runs) RequestQueue.forRuns() else "scan"
      // A user waits for the result, so this call restarts a failed front end without a pause.
      send(session, new Request(queue, body(session, kind, fields), session), atOnce = true)
    } catch {
      case e: FrontendDown if e.changing =>
        throw new SieveException("SIEVE_STATEMENT_UNKNOWN_OUTCOME",
          s"${e.getMessage}. It is unknown whether this statement took effect: SHOW SIEVE VERSIONS " +
            "shows whether an index has a new version. Run the statement again", state = "08007")
      case e: FrontendDown => throw down(e.getMessage)
      case _: TimeoutException => throw down(s"the front end did not answer in " +
        s"${Settings.startMillis(session)} ms (spark.sieve.start.timeout); see the driver's log")
    }
  }

  private def down(why: String) = new SieveException(
    "SIEVE_FRONT_END_DOWN", s"$why. Nothing was changed: run the statement again", state = "08006")

  /**
   * Sends a scan's request while the scan still does other work. If no front end runs, or if many requests of scans
   * already wait, sends nothing and returns None.
   */
  def prefetch(session: Compat.Session, body: String): Option[Sent] =
    // The limit of 64 waiting scans prevents requests from accumulating while the front end hangs.
    FrontendProcess.running.filter(_.queue.scansWaiting < 64).map { process =>
      Sent(process, put(process, new Request("scan", body, session)))
    }

  /**
   * Sends the request of a scan and waits for the reply. If `prefetched` is the same request, sends nothing and waits
   * for the reply to `prefetched`. If the reply arrives too late for this scan, `answer` still processes the reply.
   */
  def prune[A](
      session: Compat.Session, body: String, prefetched: Option[Sent], answer: JsonNode => A): A = {
    var before = prefetched.filter(_.request.body == body)
    if (before.isEmpty) prefetched.foreach(other => other.process.queue.withdraw(other.request))
    exchange(answer, patience(session, "prune")(_) + body.length / charactersAMilli) {
      val sent = before.getOrElse(send(session, new Request("scan", body, session)))
      before = None
      sent
    }
  }

  /**
   * Returns the HTML of a page in Spark's web UI. Returns None if no front end runs, if it returns an error, or if it
   * does not answer within a second.
   */
  def page(session: Compat.Session, fields: Map[String, Any]): Option[String] =
    FrontendProcess.running.flatMap { process =>
      val request = put(process, new Request("page", body(session, "page", fields), session))
      try Option(checked(request.answer.get(1, TimeUnit.SECONDS)).path("html").asText)
      catch {
        case _: TimeoutException | _: ExecutionException | _: SieveException =>
          process.queue.withdraw(request)
          None
      }
    }

  /** Reports a change of a table to the front end, and waits until the front end has processed the change. */
  def tell(session: Compat.Session, fields: Map[String, Any]): Unit =
    exchange(identity[JsonNode], patience(session, "event"))(send(session, event("statement", session, fields)))

  /**
   * Reports a change of a table to the front end without waiting, because the change can require long work. `done`
   * receives the front end's answer. The returned function tells whether the front end has begun the work.
   */
  def post(
      session: Compat.Session, fields: Map[String, Any], done: Try[JsonNode] => Unit): () => Boolean = {
    val request = send(session, event("background", session, fields)).request
    request.answer.whenComplete((node, e) => done(if (e == null) Success(node) else Failure(e)))
    () => request.begun || request.answer.isDone
  }

  /** Makes the front end save the record of this driver's scans, and waits until the record is saved. */
  def saveHistory(session: Compat.Session): Unit = exchange(identity[JsonNode], patience(session, "history")) {
    send(session, new Request("statement", body(session, "history", Map.empty), session), atOnce = true)
  }

  private def event(queue: String, session: Compat.Session, fields: Map[String, Any]) =
    new Request(queue, body(session, "event", fields), session)

  /** A request as JSON: its kind, its fields, and the session's Sieve settings. */
  def body(session: Compat.Session, kind: String, fields: Map[String, Any]): String =
    Json.write(fields ++ Map("kind" -> kind, "settings" -> Settings.of(session)))

  /**
   * The maximum time in milliseconds for which a caller waits for an answer. A scan waits longer while the front end is
   * starting.
   */
  private def patience(session: Compat.Session, kind: String)(process: FrontendProcess): Long = kind match {
    case "parse" => Settings.startMillis(session)
    case "prune" =>
      val starting =
        if (process.ready || !process.awaited) 0L else Settings.startMillis(session) - process.ageMillis
      math.max(Settings.pruneMillis(session), starting)
    case "event" => 60000L // only a background thread waits
    case "history" => 20000L
    case _ => Long.MaxValue
  }

  /** The minimum speed at which the front end receives and processes a long request, in characters per millisecond. */
  private val charactersAMilli = 4000

  /**
   * Sends a request and waits for the answer. If the front end ends before it begins the request, sends the request
   * once more, to the next front end.
   */
  private def exchange[A](use: JsonNode => A, patience: FrontendProcess => Long)(sending: => Sent): A = {
    def once(): A = {
      val Sent(process, request) = sending
      val answer = request.answer.thenApply[A](node => use(checked(node)))
      try answer.get(patience(process), TimeUnit.MILLISECONDS)
      catch {
        case e: ExecutionException => throw e.getCause
        case e: TimeoutException => process.queue.withdraw(request); throw e
        case e: InterruptedException => cancel(process, request); throw e
      }
    }
    try once() catch { case _: Undelivered => once() }
  }

  private def cancel(process: FrontendProcess, request: Request): Unit =
    if (!process.queue.withdraw(request) && !request.isScan) {
      request.cancelled = true
      request.session.sparkContext.cancelJobsWithTag(request.tag)
      // The cancelled statement still deletes the files that it has written. The caller receives the error only after
      // this cleanup, or after 10 seconds.
      try request.answer.get(10, TimeUnit.SECONDS) catch { case _: Exception => }
    }

  private def send(session: Compat.Session, request: Request, atOnce: Boolean = false): Sent = {
    val process = FrontendProcess.ensure(session, atOnce)
    Sent(process, put(process, request))
  }

  private def put(process: FrontendProcess, request: Request): Request = {
    process.queue.put(request)
    request
  }

  private def checked(node: JsonNode): JsonNode = {
    val error = node.get("error")
    if (error != null) throw new SieveException(
      error.get("condition").asText, error.get("message").asText, state = error.get("sql_state").asText)
    node
  }
}
