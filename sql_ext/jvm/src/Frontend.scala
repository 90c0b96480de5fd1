package org.apache.spark.sql.sieve

import java.io.{BufferedReader, File, InputStreamReader}
import java.net.InetAddress
import java.security.SecureRandom
import java.util.concurrent.TimeUnit

import py4j.ClientServer

import org.apache.spark.api.java.JavaSparkContext
import org.apache.spark.api.python.{PythonAccumulatorV2, PythonUtils}
import org.apache.spark.internal.Logging
import org.apache.spark.util.AccumulatorV2

/** Stands in for the accumulator that sends updates to a PySpark that listens; ours does not. */
class SilentAccumulator extends PythonAccumulatorV2("127.0.0.1", 0, "") {
  override def merge(other: AccumulatorV2[Array[Byte], java.util.List[Array[Byte]]]): Unit = ()
}

/** What the child may call: the entry point of its gateway. */
class Gateway(session: Compat.Session) {
  val context: JavaSparkContext = new JavaSparkContext(session.sparkContext)
  def defaultSession: Compat.Session = session
  def accumulator(): PythonAccumulatorV2 = {
    val made = new SilentAccumulator
    context.sc.register(made)
    made
  }
  def ready(): Unit = Frontend.attached()
  def take(lane: String, millis: Long): String = Link.take(lane, millis)
  def piece(id: Long, k: Int): String = Link.piece(id, k)
  def session(id: Long): Compat.Session = Link.session(id)
  def cancelled(id: Long): Boolean = Link.cancelled(id)
  def answer(id: Long, text: String): Unit = Link.answer(id, text)
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
  def registered(session: Compat.Session, database: String): String =
    Tables.registered(session, database)
  def explain(session: Compat.Session, query: String): String = Explain.query(session, query)
}

/**
 * The Python child that parses SIEVE statements, runs them and answers scans: one a driver, started
 * when first needed, started again with back-off when it dies, ended with the driver (its standard
 * input closes). Its gateway listens on loopback and wants a token that only the child is given.
 */
object Frontend extends Logging {
  private var child: Process = _
  private var gateway: ClientServer = _
  private var application: String = _
  private var listening: String = _
  private var failures = 0
  private var notBefore = 0L
  @volatile private var up = false

  def ready: Boolean = up
  def attached(): Unit = synchronized { up = true; failures = 0 }

  /** Starts the child unless one runs; throws FrontendDown while it may not be started again. */
  def ensure(session: Compat.Session): Unit = synchronized {
    val context = session.sparkContext
    if (child != null && application != context.applicationId) stop()
    if (child == null || !child.isAlive) {
      val wait = notBefore - System.currentTimeMillis
      if (wait > 0) throw new FrontendDown(s"the front end stopped; next start in $wait ms")
      start(session)
    }
  }

  private def start(session: Compat.Session): Unit = {
    val context = session.sparkContext
    up = false
    application = context.applicationId
    val bytes = new Array[Byte](32)
    new SecureRandom().nextBytes(bytes)
    val secret = bytes.map("%02x".format(_)).mkString
    gateway = new ClientServer.ClientServerBuilder(new Gateway(session))
      .authToken(secret).javaPort(0).javaAddress(InetAddress.getLoopbackAddress).build()
    listen(gateway)
    val builder = new ProcessBuilder(Settings.python(session), "-m", "sql_ext.frontend")
    val environment = builder.environment
    val port = gateway.getJavaServer.getListeningPort
    environment.put("PYSPARK_GATEWAY_PORT", port.toString)
    environment.put("PYSPARK_GATEWAY_SECRET", secret)
    environment.put("PYSPARK_PIN_THREAD", "true")
    val path = Seq(PythonUtils.sparkPythonPath, packageRoot.getOrElse("")) ++
      Option(environment.get("PYTHONPATH"))
    environment.put("PYTHONPATH", path.filter(_.nonEmpty).mkString(File.pathSeparator))
    builder.redirectErrorStream(true)
    try child = builder.start()
    catch {
      case e: java.io.IOException =>
        failed()
        throw new FrontendDown(s"${e.getMessage}; set spark.sieve.python to an interpreter that has " +
          "the package sieve-index")
    }
    watch(child, gateway)
    if (listening != application) {
      context.addSparkListener(new CatalogListener(session))
      listening = application
    }
  }

  /** On a daemon thread, whose connection threads are daemons too: they must not outlive main. */
  private def listen(server: ClientServer): Unit = {
    val thread = new Thread(() => server.startServer(false), "sieve-gateway")
    thread.setDaemon(true)
    thread.start()
    val end = System.nanoTime + TimeUnit.SECONDS.toNanos(10)
    while (server.getJavaServer.getListeningPort <= 0 && System.nanoTime < end) Thread.sleep(5)
  }

  private def watch(process: Process, served: ClientServer): Unit = {
    val tail = new java.util.concurrent.atomic.AtomicReference[String]("")
    val thread = new Thread(() => {
      val lines = new BufferedReader(new InputStreamReader(process.getInputStream))
      Iterator.continually(lines.readLine()).takeWhile(_ != null).foreach { line =>
        if (line.nonEmpty) tail.set(line)
        if (line.startsWith("WARN") || line.startsWith("ERROR")) logWarning(s"sieve: $line")
        else logInfo(s"sieve: $line")
      }
      process.waitFor()
      served.shutdown()
      synchronized { if (child eq process) { up = false; failed() } }
      Link.abandon(s"the front end stopped (exit ${process.exitValue}: ${tail.get}); the next " +
        "statement starts it again")
    }, "sieve-front-end")
    thread.setDaemon(true)
    thread.start()
  }

  private def failed(): Unit = {
    val pause = if (failures == 0) 0L else math.min(60000L, 500L << math.min(failures, 7))
    failures += 1
    notBefore = System.currentTimeMillis + pause
  }

  private def stop(): Unit = {
    child.destroy()
    child.waitFor(5, TimeUnit.SECONDS)
    child = null
    notBefore = 0L
  }

  /** The folder above the Python package that carried this jar, if it was installed that way. */
  private def packageRoot: Option[String] = {
    val jar = new File(getClass.getProtectionDomain.getCodeSource.getLocation.toURI)
    Option(jar.getParentFile).flatMap(d => Option(d.getParentFile))
      .filter(d => new File(d, "frontend.py").isFile).map(_.getParent)
  }
}
