package org.apache.spark.sql.sieve.ask

import java.io.{BufferedReader, File, InputStreamReader, IOException}
import java.net.InetAddress
import java.security.SecureRandom
import java.util.concurrent.TimeUnit
import scala.jdk.CollectionConverters._
import py4j.ClientServer
import org.apache.spark.api.python.PythonUtils
import org.apache.spark.internal.Logging
import org.apache.spark.sql.sieve.base.{Compat, Settings}

/** The process of a front end, with its own queue of requests, and its own gateway for calls to the driver. */
final class FrontendProcess(
    val application: String, val python: String, val process: Process, val gateway: ClientServer,
    val queue: RequestQueue, failures: Int) {
  private val started = System.nanoTime
  @volatile var ready = false
  @volatile var givenUp = false
  /** True if scans wait while this front end is starting. False if two or more front ends have failed in a row. */
  val awaited: Boolean = failures <= 1
  /**
   * The time in milliseconds that the process may take to start. If the process takes longer, the driver kills it and
   * starts another one.
   */
  @volatile var patience: Long = Backoff.millis(10000, failures, 160000)
  def ageMillis: Long = TimeUnit.NANOSECONDS.toMillis(System.nanoTime - started)
}

/**
 * The Python process that parses and runs SIEVE statements, and that tells scans which files to skip. A driver has one
 * front end, and starts the front end at its first use. After a second failure in a row, the driver pauses before it
 * starts the process again. When the driver ends, the process reaches the end of its standard input, and then ends,
 * too. The gateway listens on the loopback address and requires a token that only this process receives.
 */
object FrontendProcess extends Logging {
  /**
   * Creates the object whose methods a front end is allowed to call. The arguments are the session that starts the
   * front end and the front end's request queue.
   */
  @volatile var entryPoint: (Compat.Session, RequestQueue) => AnyRef = _
  @volatile private var current: FrontendProcess = _
  private var failures = 0
  private var notBefore = 0L
  private var lastError = ""

  def attached(queue: RequestQueue): Unit = synchronized {
    if (current != null && (current.queue eq queue)) {
      current.ready = true
      CircuitBreaker.reset()
    }
  }

  /** The front end. Returns None if the process does not run or has not yet connected to the driver. */
  def running: Option[FrontendProcess] =
    synchronized { Option(current).filter(c => c.ready && c.process.isAlive) }

  /**
   * Returns the front end, and starts it if it does not run. Throws FrontendDown if the front end cannot start. During
   * the pause after a failure, a call without `atOnce` also throws FrontendDown.
   */
  def ensure(session: Compat.Session, atOnce: Boolean): FrontendProcess = synchronized {
    val application = session.sparkContext.applicationId
    if (current != null && current.application != application) end(current.application)
    if (current != null && !current.ready && current.ageMillis > current.patience) giveUp(current)
    if (current == null || !current.process.isAlive) {
      if (!atOnce && System.currentTimeMillis < notBefore) throw new FrontendDown(lastError)
      current = start(session, application)
    }
    current.patience = math.max(current.patience, 3 * Settings.startMillis(session))
    current
  }

  /** True if this driver has not yet started a front end, or no longer uses the last one. */
  def isNew: Boolean = current == null

  /**
   * Starts the front end on another thread. Ignores a failure of the start, because a query that needs the front end
   * reports this failure.
   */
  def startBeside(session: Compat.Session): Unit = daemon("sieve-start") {
    try ensure(session, atOnce = false) catch { case _: FrontendDown => }
  }

  /** Ends the front end that belongs to `application`, because this application has ended. */
  def end(application: String): Unit = synchronized {
    if (current != null && current.application == application) {
      current.process.destroy()
      current = null
      notBefore = 0L
      failures = 0
    }
  }

  private def giveUp(stuck: FrontendProcess): Unit = {
    val late = s"the front end did not start in ${stuck.ageMillis} ms; another one is started"
    logWarning(s"sieve: $late")
    current = null
    stuck.givenUp = true
    failed(0, late)
    // The process might not end by itself, for example if the file system with the Python interpreter hangs.
    stuck.process.destroyForcibly()
    stuck.gateway.shutdown()
    stuck.queue.close(new Undelivered(late))
  }

  private def start(session: Compat.Session, application: String): FrontendProcess = {
    val token = new Array[Byte](32)
    new SecureRandom().nextBytes(token)
    val secret = token.map("%02x".format(_)).mkString
    val queue = new RequestQueue
    val gateway = new ClientServer.ClientServerBuilder(entryPoint(session, queue))
      .authToken(secret).javaPort(0).javaAddress(InetAddress.getLoopbackAddress)
      .autoStartJavaServer(false).build()
    listen(gateway)
    val python = Settings.python(session.sparkContext)
    val builder = new ProcessBuilder(python, "-m", "sql_ext.frontend.main").redirectErrorStream(true)
    val path = Seq(Some(PythonUtils.sparkPythonPath), packageRoot, sys.env.get("PYTHONPATH")).flatten
    builder.environment.putAll(Map(
      "PYSPARK_GATEWAY_PORT" -> gateway.getJavaServer.getListeningPort.toString,
      "PYSPARK_GATEWAY_SECRET" -> secret, "PYSPARK_PIN_THREAD" -> "true",
      "PYTHONPATH" -> path.filter(_.nonEmpty).mkString(File.pathSeparator)).asJava)
    val process =
      try builder.start()
      catch {
        case e: IOException =>
          gateway.shutdown()
          throw new FrontendDown(failed(0, cannotStart(python, e.getMessage)))
      }
    Counters.frontEndStarts.increment()
    val made = new FrontendProcess(application, python, process, gateway, queue, failures)
    daemon("sieve-front-end")(watch(made))
    made
  }

  private def daemon(name: String)(work: => Unit): Unit = {
    val thread = new Thread(() => work, name)
    thread.setDaemon(true)
    thread.start()
  }

  /**
   * Starts the gateway server on a daemon thread. The server's connection threads are then daemon threads, too, and do
   * not prevent the driver from ending.
   */
  private def listen(server: ClientServer): Unit = {
    daemon("sieve-gateway")(server.startServer(false))
    val end = System.nanoTime + TimeUnit.SECONDS.toNanos(10)
    while (server.getJavaServer.getListeningPort <= 0 && System.nanoTime < end) Thread.sleep(5)
  }

  /** Logs the front end's output. When the front end has ended, fails all requests that wait for an answer. */
  private def watch(one: FrontendProcess): Unit = {
    var tail = ""
    val lines = new BufferedReader(new InputStreamReader(one.process.getInputStream))
    try Iterator.continually(lines.readLine()).takeWhile(_ != null).foreach { line =>
      if (line.nonEmpty) tail = line
      if (line.startsWith("WARN") || line.startsWith("ERROR")) logWarning(s"sieve: $line")
      else logInfo(s"sieve: $line")
    } catch { case e: IOException => tail = e.getMessage } // `destroy` has closed the stream
    val exit = one.process.waitFor()
    one.gateway.shutdown()
    if (one.ready) one.queue.close(new Undelivered(
      failed(one.ageMillis, s"the front end stopped (exit $exit); the next statement starts it again")))
    else if (!one.givenUp)
      one.queue.close(new FrontendDown(failed(0, cannotStart(one.python, s"exit $exit: $tail"))))
  }

  private def cannotStart(python: String, why: String): String =
    s"the front end cannot be started with $python ($why); set spark.sieve.python to an " +
      "interpreter that has the package sieve-index"

  /**
   * Records a failure of the front end, and returns `why`. From the second successive failure on, each failure doubles
   * the pause before scans start a front end again.
   */
  private def failed(ageMillis: Long, why: String): String = synchronized {
    // If the front end ran for more than a minute, the failures before its start do not count.
    if (ageMillis > 60000) failures = 0
    val pause = if (failures == 0) 0L else Backoff.millis(500, failures, 60000)
    failures += 1
    notBefore = System.currentTimeMillis + pause
    lastError = why
    why
  }

  /** The folder that contains the Python package of this jar. Returns None if the jar is in no package. */
  private def packageRoot: Option[String] = {
    val jar = new File(getClass.getProtectionDomain.getCodeSource.getLocation.toURI)
    Option(jar.getParentFile).flatMap(d => Option(d.getParentFile))
      .filter(d => new File(d, "frontend/main.py").isFile).map(_.getParent)
  }
}
