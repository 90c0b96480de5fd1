package org.apache.spark.sql.sieve.observe

import java.io.{OutputStream, PrintStream}
import scala.collection.mutable
import scala.util.Try
import scala.util.control.NonFatal

/**
 * Formats the output of `sieve sql`. On a terminal, the columns of a result are aligned. A statement without result
 * columns prints no header.
 *
 * Spark's shell prints each row with one `println` to the stream `out` of Hive's session state, with tabs between
 * cells. The shell prints "Time taken" to the stream `info`. So a result begins with the first row in `out`, and ends
 * before the next line in another stream.
 */
object ShellOutput {
  /**
   * The environment variable that `sieve sql` sets to `aligned` if the output is a terminal, and otherwise to `plain`.
   */
  private val form = "SIEVE_SQL"
  private val longest = 30L * 1000 * 1000 * 1000
  private val stateClass = "org.apache.hadoop.hive.ql.session.SessionState"

  /**
   * Replaces the output streams of Spark's SQL shell, and does nothing in other programs. The shell calls this method
   * on its main thread while it creates the session, and then sets its streams again. So a separate thread replaces the
   * streams after the shell has set its own streams.
   */
  def install(): Unit = sys.env.get(form).foreach { named =>
    quietly {
      val state = Class.forName(stateClass).getMethod("get").invoke(null)
      if (state != null && !state.getClass.getMethod("getIsSilent").invoke(state).asInstanceOf[Boolean]) {
        val streams = new Streams(state, named == "aligned")
        streams.replace()
        val waiting = new Thread("sieve-shell-output") {
          override def run(): Unit = quietly {
            val end = System.nanoTime + longest
            while (!streams.replaced && System.nanoTime < end) {
              streams.replace()
              Thread.sleep(1)
            }
          }
        }
        waiting.setDaemon(true)
        waiting.start()
      }
    }
  }

  private def quietly(body: => Unit): Unit =
    try body
    catch { case NonFatal(_) | _: LinkageError => () }

  /** The output streams of Hive's session state. */
  private class Streams(state: AnyRef, aligned: Boolean) {
    private val own = mutable.Map.empty[String, PrintStream]
    private val again = mutable.Set.empty[String]

    /** True if the shell has set all three streams a second time, and `replace` has then replaced all of them. */
    def replaced: Boolean = again.size == 3

    def replace(): Unit = for (name <- Seq("out", "info", "err")) {
      val field = state.getClass.getField(name)
      val now = field.get(state).asInstanceOf[PrintStream]
      if (own.get(name).forall(_ ne now)) {
        if (own.contains(name)) again += name
        own(name) = if (name == "out") new Rows(now, if (aligned) Some(() => width) else None)
          else new After(now, () => own.get("out"))
        field.set(state, own(name))
      }
    }
  }

  /** The width of the terminal in characters, according to the shell's line editor. */
  private def width: Int = Try {
    val terminal = Class.forName("jline.TerminalFactory").getMethod("get").invoke(null)
    Class.forName("jline.Terminal").getMethod("getWidth").invoke(terminal).asInstanceOf[Int]
  }.filter(_ > 20).getOrElse(80)

  /** Replaces the shell's stream `out`. The shell prints rows with `println`; it prints its prompts with `write`. */
  private class Rows(to: PrintStream, width: Option[() => Int]) extends PrintStream(to, true) {
    private val most = 1000
    private val lines = mutable.ArrayBuffer.empty[String]
    private var widths: Option[Seq[Int]] = None

    override def println(line: String): Unit = synchronized {
      if (widths.isDefined) widths.foreach(known => to.println(TextTable.aligned(Seq(line), known)))
      else {
        lines += line
        if (lines.size == most || width.isEmpty && lines.size > 1) begin()
      }
    }

    override def println(line: Any): Unit = println(String.valueOf(line))

    /** Prints the waiting rows of a result that has ended. */
    def end(): Unit = synchronized {
      if (lines.nonEmpty && !(lines.size == 1 && lines.head == "Response code")) {
        Progress.clear()
        to.println(width.fold(lines.mkString("\n"))(known => TextTable.shown(lines.toSeq, known())))
      }
      lines.clear()
      widths = None
    }

    /** Prints the rows of a result that have arrived so far. Later rows are printed when they arrive. */
    private def begin(): Unit = {
      Progress.clear()
      val known = width.map(_ => TextTable.widths(lines.toSeq))
      to.println(known.fold(lines.mkString("\n"))(TextTable.aligned(lines.toSeq, _)))
      lines.clear()
      widths = Some(known.getOrElse(Nil))
    }
  }

  /** A stream that prints all waiting rows of a result before it prints its own text. */
  private class After(to: PrintStream, rows: () => Option[PrintStream]) extends PrintStream(new OutputStream {
    override def write(byte: Int): Unit = write(Array(byte.toByte), 0, 1)
    override def write(bytes: Array[Byte], from: Int, count: Int): Unit = {
      rows().foreach { case some: Rows => some.end(); case _ => () }
      Progress.clear()
      to.write(bytes, from, count)
      to.flush()
    }
  }, true)
}
