package org.apache.spark.sql.sieve.observe

import org.apache.spark.SparkContext
import org.apache.spark.status.api.v1.StageData

/**
 * A progress line on the terminal of `sieve sql`, which replaces Spark's progress bar. For a SIEVE statement, the line
 * shows, for example, "reading 40 of 100 files". For any other statement, the line shows the number of tasks.
 */
object Progress {
  /** The environment variable that `sieve sql` sets if standard error is a terminal. */
  private val wanted = "SIEVE_SQL_STEPS"
  private val pause = 300L
  private val longest = 78
  // The description of a job ends with the statement's current step and with the number of files that the job reads.
  private val step = """(?s).* \(([^()]+?)(?: (\d+) files)?\)""".r
  private var shown = 0
  private var started = false

  /** Starts to watch the jobs of an application. Further calls do nothing. */
  def watch(context: SparkContext): Unit = synchronized {
    if (!started && sys.env.contains(wanted)) {
      started = true
      val thread = new Thread("sieve-progress") {
        override def run(): Unit = while (!context.isStopped) {
          Thread.sleep(pause)
          show(context.statusStore.activeStages())
        }
      }
      thread.setDaemon(true)
      thread.start()
    }
  }

  /** Removes the progress line from the terminal, so that other output can take its place. */
  def clear(): Unit = synchronized {
    if (shown > 0) print("")
  }

  private def show(stages: Seq[StageData]): Unit = synchronized {
    stages.sortBy(_.stageId).lastOption.fold(clear())(stage => print(text(stage).take(longest)))
  }

  /** The text for a stage: the name of its work, and how much of the work is done. */
  private def text(stage: StageData): String = {
    val (done, all) = (stage.numCompleteTasks, stage.numTasks.max(1))
    stage.description.getOrElse("") match {
      case step(name, files) if files != null => s"$name ${files.toLong * done / all} of $files files"
      case step(name, _) => s"$name: $done of $all tasks"
      case _ => s"stage ${stage.stageId}: $done of $all tasks"
    }
  }

  private def print(line: String): Unit = {
    System.err.print("\r" + line + " " * (shown - line.length).max(0) + (if (line.isEmpty) "\r" else ""))
    System.err.flush()
    shown = line.length
  }
}
