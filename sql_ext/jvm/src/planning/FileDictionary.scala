package org.apache.spark.sql.sieve

import java.util.{HashMap => JHashMap}
import scala.jdk.CollectionConverters._
import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.fs.Path

/**
 * A file as an index knows it: the number of its first range, the state it had when it was read, the
 * offsets at which it is cut into ranges, and the bytes of its footer if it is cut. A length below zero
 * is that of a file which proves nothing; `isRacy` tells one that was too young to be read.
 */
final case class IndexedFile(first: Int, state: State, cuts: Array[Long], footer: Long) {
  def isRacy: Boolean = state.length == FileDictionary.racy
}

/** The files that one state of a table's indexes knows, by path: one for each state of each. */
final class FileDictionary(states: Int, cuts: Int) extends JHashMap[Path, List[IndexedFile]](states * 2) {
  def bytes: Long = states * FileDictionary.bytesOfFile + cuts * java.lang.Long.BYTES
  /** How many ranges have a number; a file that is not cut is one. */
  def ranges: Int = states + cuts
  def of(path: Path): List[IndexedFile] = getOrDefault(path, Nil)
}

/** The dictionaries of this driver: each is asked for once and kept as long as memory allows. */
object FileDictionary {
  /** The length that stands for a file too young to be read. */
  val racy: Long = -2
  private val bytesOfFile = Policy.limit("dictionary_bytes_a_file")
  private val kept = new LruMap[String, FileDictionary](Long.MaxValue)
  private val capacity = Runtime.getRuntime.maxMemory / Policy.limit("dictionary_memory_divisor")

  def get(id: String): Option[FileDictionary] = kept.synchronized(Option(kept.get(id)))

  /** Keeps the one that an answer holds, and of the others those used last: each refresh makes a new one. */
  def add(id: String, answer: JsonNode): FileDictionary = {
    val made = read(answer)
    kept.synchronized {
      kept.put(id, made)
      var bytes = kept.values.asScala.map(_.bytes).sum
      val eldest = kept.values.iterator
      while (bytes > capacity && kept.size > 1) {
        bytes -= eldest.next().bytes
        eldest.remove()
      }
    }
    made
  }

  private def read(answer: JsonNode): FileDictionary = {
    val (paths, lengths, times) = (answer.get("paths"), answer.get("lengths"), answer.get("times"))
    val (cuts, counts, footers) = (answer.path("cuts"), answer.path("cut_counts"), answer.path("footers"))
    val made = new FileDictionary(paths.size, cuts.size)
    var cut = 0
    for (i <- 0 until paths.size) {
      val path = new Path(paths.get(i).asText)
      val own = Array.tabulate(counts.path(i).asInt)(k => cuts.get(cut + k).asLong)
      val state = State(lengths.get(i).asLong, times.get(i).asLong)
      made.put(path, IndexedFile(i + cut, state, own, footers.path(i).asLong) :: made.of(path))
      cut += own.length
    }
    made
  }
}
