package org.apache.spark.sql.sieve

import java.util.{HashMap => JHashMap}
import scala.jdk.CollectionConverters._
import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.fs.Path

/**
 * A file as an index knows it: its ordinal, and the state it had when it was read. A length below
 * zero is that of a file which proves nothing; `isRacy` tells one that was too young to be read.
 */
final case class IndexedFile(ordinal: Int, state: State) {
  def isRacy: Boolean = state.length == FileDictionary.racy
}

/** The files that one state of a table's indexes knows, by path: one for each state of each. */
final class FileDictionary(val states: Int) extends JHashMap[Path, List[IndexedFile]](states * 2) {
  def of(path: Path): List[IndexedFile] = getOrDefault(path, Nil)
}

/** The dictionaries of this driver: each is asked for once and kept as long as memory allows. */
object FileDictionary {
  /** The length that stands for a file too young to be read. */
  val racy: Long = -2
  private val kept = new LruMap[String, FileDictionary](Long.MaxValue)
  private val capacity = Runtime.getRuntime.maxMemory /
    Policy.limit("dictionary_memory_divisor") / Policy.limit("dictionary_bytes_a_file")

  def get(id: String): Option[FileDictionary] = kept.synchronized(Option(kept.get(id)))

  /** Keeps the one that an answer holds, and of the others those used last: each refresh makes a new one. */
  def add(id: String, answer: JsonNode): FileDictionary = {
    val made = read(answer)
    kept.synchronized {
      kept.put(id, made)
      var states = kept.values.asScala.map(_.states.toLong).sum
      val eldest = kept.values.iterator
      while (states > capacity && kept.size > 1) {
        states -= eldest.next().states
        eldest.remove()
      }
    }
    made
  }

  private def read(answer: JsonNode): FileDictionary = {
    val (paths, lengths, times) = (answer.get("paths"), answer.get("lengths"), answer.get("times"))
    val made = new FileDictionary(paths.size)
    for (i <- 0 until paths.size) {
      val path = new Path(paths.get(i).asText)
      made.put(path, IndexedFile(i, State(lengths.get(i).asLong, times.get(i).asLong)) :: made.of(path))
    }
    made
  }
}
