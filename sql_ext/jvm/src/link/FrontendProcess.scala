package org.apache.spark.sql.sieve

import java.io.{BufferedReader, File, IOException, InputStreamReader}
import java.net.InetAddress
import java.security.SecureRandom
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import py4j.ClientServer

import org.apache.spark.api.java.JavaSparkContext
import org.apache.spark.api.python.{PythonAccumulatorV2, PythonUtils}
import org.apache.spark.internal.Logging
import org.apache.spark.util.AccumulatorV2

/** Stands in for the accumulator that sends updates to a PySpark that listens; ours does not. */
class SilentAccumulator extends PythonAccumulatorV2("127.0.0.1", 0, "") {
  override def merge(other: AccumulatorV2[Array[Byte], java.util.List[Array[Byte]]]): Unit = ()
}

/** What one child may call: the entry point of its gateway. */
class Gateway(session: Compat.Session, lanes: Lanes) {
  val context: JavaSparkContext = new JavaSparkContext(session.sparkContext)
  def defaultSession: Compat.Session = session
  def accumulator(): PythonAccumulatorV2 = {
    val made = new SilentAccumulator
    context.sc.register(made)
    made
  }
  def ready(): Unit = Frontend.attached(lanes)
  def take(lane: String, millis: Long): String = lanes.take(lane, millis)
  def piece(id: Long, k: Int): String = lanes.piece(id, k)
  def session(id: Long): Compat.Session = lanes.session(id)
  def changing(id: Long): Unit = lanes.changing(id)
  def cancelled(id: Long): Boolean = lanes.cancelled(id)
  def answer(id: Long, text: String): Unit = lanes.answer(id, text)
  def table(session: Compat.Session, parts: java.util.List[String]): TableAccess =
    Tables.resolve(session, parts)
  def databaseLocation(session: Compat.Session, database: String): String =
    Tables.databaseLocation(session, database)
  /** A session like the user's to build in, so that nothing set for the build shows in theirs. */
  def buildSession(session: Compat.Session): Compat.Session = {
    val build = session.cloneSession()
    build.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "131072")
    build.conf.set("spark.sql.parquet.compression.codec", "zstd")
    build.conf.set("spark.sql.adaptive.enabled", "false")
    // A build groups by file, a few lines a task: more groups than slots would only queue.
    build.conf.set("spark.sql.shuffle.partitions", build.sparkContext.defaultParallelism.toString)
    build
  }
  def tables(session: Compat.Session, database: String): String =
    Tables.tables(session, database)
  def counters(): String = Counters.json
  def explain(session: Compat.Session, query: String): String = Explain.query(session, query)
  def asked(
      session: Compat.Session, name: java.util.List[String], predicate: String): String =
    Explain.asked(session, name.asScala.toList, predicate)
  def planColumn(
      session: Compat.Session, name: java.util.List[String], column: java.util.List[String]): Unit =
    Tables.plan(session, name.asScala.toList, column.asScala.toList)
  def scannedFiles(
      session: Compat.Session, name: java.util.List[String], predicate: String): String =
    ScannedFiles.of(session, name.asScala.toList, predicate)
}

/** A child as it runs: its lanes carry requests to it, its gateway listens to it alone. */
final class Child(
    val application: String, val python: String, val process: Process, val gateway: ClientServer,
    val lanes: Lanes, failures: Int) {
  private val started = System.nanoTime
  @volatile var ready = false
  @volatile var givenUp = false
  /** Whether scans wait for it to come up: not once others have failed one after another. */
  val awaited: Boolean = failures <= 1
  /** Milliseconds after which nobody can be waiting any more for it to come up. */
  @volatile var patience: Long = 10000L << math.min(failures, 4)
  def ageMillis: Long = TimeUnit.NANOSECONDS.toMillis(System.nanoTime - started)
}

/**
 * The Python child that parses SIEVE statements, runs them and answers scans: one a driver, started
 * when first needed, started again with back-off when it dies, ended with the driver (its standard
 * input closes). Its gateway listens on loopback and wants a token that only the child is given.
 */
object Frontend extends Logging {
  private val steadyMillis = 60000L
  private var child: Child = _
  private var failures = 0
  private var notBefore = 0L
  private var lastWords = ""

  def attached(lanes: Lanes): Unit = synchronized {
    if (child != null && (child.lanes eq lanes)) {
      child.ready = true
      Breaker.reset()
    }
  }

  /** The child, if it runs and has attached itself. */
  def running: Option[Child] =
    synchronized { Option(child).filter(c => c.ready && c.process.isAlive) }

  /** The child, started unless it runs; throws FrontendDown if it cannot, or may not yet, start. */
  def ensure(session: Compat.Session, atOnce: Boolean): Child = synchronized {
    val application = session.sparkContext.applicationId
    if (child != null && child.application != application) end(child.application)
    if (child != null && !child.ready && child.ageMillis > child.patience) {
      val late = s"the front end has not come up in ${child.ageMillis} ms; it is started anew"
      logWarning(s"sieve: $late")
      val stuck = child
      child = null
      stuck.givenUp = true
      failed(0, late)
      // It may not even end, where the file system that holds its Python hangs.
      stuck.process.destroyForcibly()
      stuck.gateway.shutdown()
      stuck.lanes.close(new Undelivered(late))
    }
    if (child == null || !child.process.isAlive) {
      if (!atOnce && System.currentTimeMillis < notBefore) throw new FrontendDown(lastWords)
      child = start(session, application)
    }
    child.patience = math.max(child.patience, 3 * Settings.startMillis(session))
    child
  }

  /** An application has ended: its child goes, too. */
  def end(application: String): Unit = synchronized {
    if (child != null && child.application == application) {
      child.process.destroy()
      child = null
      notBefore = 0L
      failures = 0
    }
  }

  private def start(session: Compat.Session, application: String): Child = {
    val context = session.sparkContext
    val bytes = new Array[Byte](32)
    new SecureRandom().nextBytes(bytes)
    val secret = bytes.map("%02x".format(_)).mkString
    val lanes = new Lanes
    val gateway = new ClientServer.ClientServerBuilder(new Gateway(session, lanes))
      .authToken(secret).javaPort(0).javaAddress(InetAddress.getLoopbackAddress)
      .autoStartJavaServer(false).build()
    listen(gateway)
    val python = Settings.python(context)
    val builder = new ProcessBuilder(python, "-m", "sql_ext.frontend.main")
    val environment = builder.environment
    val port = gateway.getJavaServer.getListeningPort
    environment.put("PYSPARK_GATEWAY_PORT", port.toString)
    environment.put("PYSPARK_GATEWAY_SECRET", secret)
    environment.put("PYSPARK_PIN_THREAD", "true")
    val path = Seq(PythonUtils.sparkPythonPath, packageRoot.getOrElse("")) ++
      Option(environment.get("PYTHONPATH"))
    environment.put("PYTHONPATH", path.filter(_.nonEmpty).mkString(File.pathSeparator))
    builder.redirectErrorStream(true)
    val process =
      try builder.start()
      catch {
        case e: IOException =>
          gateway.shutdown()
          throw new FrontendDown(failed(0, cannotStart(python, e.getMessage)))
      }
    Counters.frontEndStarts.increment()
    val made = new Child(application, python, process, gateway, lanes, failures)
    watch(made)
    made
  }

  /** On a daemon thread, whose connection threads are daemons too: they must not outlive main. */
  private def listen(server: ClientServer): Unit = {
    val thread = new Thread(() => server.startServer(false), "sieve-gateway")
    thread.setDaemon(true)
    thread.start()
    val end = System.nanoTime + TimeUnit.SECONDS.toNanos(10)
    while (server.getJavaServer.getListeningPort <= 0 && System.nanoTime < end) Thread.sleep(5)
  }

  /** Passes on what the child prints, and tells those who wait for it when it has ended. */
  private def watch(child: Child): Unit = {
    val thread = new Thread(() => {
      var tail = ""
      val lines = new BufferedReader(new InputStreamReader(child.process.getInputStream))
      try Iterator.continually(lines.readLine()).takeWhile(_ != null).foreach { line =>
        if (line.nonEmpty) tail = line
        if (line.startsWith("WARN") || line.startsWith("ERROR")) logWarning(s"sieve: $line")
        else logInfo(s"sieve: $line")
      } catch { case e: IOException => tail = e.getMessage } // `destroy` closes what is read here
      val exit = child.process.waitFor()
      child.gateway.shutdown()
      if (child.ready) {
        val why = failed(child.ageMillis, s"the front end stopped (exit $exit); the next statement starts it again")
        child.lanes.close(new Undelivered(why))
      } else if (!child.givenUp) {
        val why = failed(0, cannotStart(child.python, s"exit $exit: $tail"))
        child.lanes.close(new FrontendDown(why))
      }
    }, "sieve-front-end")
    thread.setDaemon(true)
    thread.start()
  }

  private def cannotStart(python: String, why: String): String =
    s"the front end cannot be started with $python ($why); set spark.sieve.python to an " +
      "interpreter that has the package sieve-index"

  /** Notes a failure: scans leave a child alone for longer the more often it fails in a row. */
  private def failed(ageMillis: Long, why: String): String = synchronized {
    if (ageMillis > steadyMillis) failures = 0
    val pause = if (failures == 0) 0L else math.min(60000L, 500L << math.min(failures, 7))
    failures += 1
    notBefore = System.currentTimeMillis + pause
    lastWords = why
    why
  }

  /** The folder above the Python package that carried this jar, if it was installed that way. */
  private def packageRoot: Option[String] = {
    val jar = new File(getClass.getProtectionDomain.getCodeSource.getLocation.toURI)
    Option(jar.getParentFile).flatMap(d => Option(d.getParentFile))
      .filter(d => new File(d, "frontend.py").isFile).map(_.getParent)
  }
}
