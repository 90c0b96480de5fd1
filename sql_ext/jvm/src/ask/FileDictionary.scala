package org.apache.spark.sql.sieve.ask

import java.io.{BufferedInputStream, DataInputStream}
import java.lang.Long.reverseBytes
import java.lang.ref.SoftReference
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.security.SecureRandom
import scala.jdk.CollectionConverters._
import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.execution.datasources.PartitionDirectory
import org.apache.spark.sql.sieve.base.{Hash, LruMap, Reason, SipHash, Unpack}
import org.apache.spark.sql.sieve.formats.{Locations, State}

/** A file that an index covers: its number in the dictionary, and the number of ranges into which it is divided. */
final case class IndexedFile(number: Int, ranges: Int)

/**
 * All files that the indexes of a table cover at one time. For each file, the dictionary stores two hashes: a hash of
 * the path, and a hash of the path together with the file's length and modification time. If the second hashes (128
 * bits) of two files were equal, the dictionary would confuse the files; see decision 8 for the probability.
 *
 * @param paths   the first 64 bits of the hash of each path, sorted into buckets
 * @param high    the first 64 bits of the second hash of each file, sorted into buckets
 * @param numbers the file numbers, in the order of `high`
 * @param ranges  the number of ranges of each file, in the order of the file numbers; only one entry if all files have
 *                the same number of ranges
 */
final class FileDictionary private (
    paths: Array[Long], byPath: Buckets, high: Array[Long], low: Array[Long], numbers: Array[Int],
    byFile: Buckets, ranges: Array[Int]) {
  val bytes: Long = byPath.bytes + byFile.bytes +
    java.lang.Long.BYTES * (paths.length.toLong + high.length + low.length) +
    Integer.BYTES * (numbers.length.toLong + ranges.length)

  /** The number of files. */
  def files: Int = numbers.length

  /** True if the dictionary contains this path, whatever the file's length and modification time are. */
  def knows(path: Hash): Boolean = byPath.find(path.high, paths(_) == path.high) >= 0

  def find(path: Hash, state: State): Option[IndexedFile] = {
    val hash = FileDictionary.hash(path, state)
    val at = byFile.find(hash.high, k => high(k) == hash.high && low(k) == hash.low)
    if (at < 0) None else Some(IndexedFile(numbers(at), rangesOf(numbers(at))))
  }

  /** The numbers of listed files. If memory is short, Java removes these numbers. */
  @volatile private var statuses = new SoftReference[NumberedStatuses](null)

  /** Returns the numbers of all files in a listing. The status object of a file must determine the file's location. */
  def numbersOf(listed: Seq[PartitionDirectory], locations: Locations): ListedNumbers =
    Option(statuses.get).getOrElse {
      val made = new NumberedStatuses(this)
      statuses = new SoftReference(made)
      made
    }.of(listed, locations)

  /** The number of ranges of the file with this number. */
  def rangesOf(number: Int): Int = if (ranges.length == 1) ranges(0) else ranges(number)

  /** The file with this path and this state, or the reason why no index covers the file. */
  def lookUp(path: Hash, state: Option[State]): Either[Reason.Value, IndexedFile] =
    state.flatMap(find(path, _)).toRight(
      if (!knows(path)) Reason.NewFile else state.flatMap(whyUnread(path, _)).getOrElse(Reason.ChangedFile))

  /**
   * The reason why the build of the index left out this file. Returns None if the build indexed the file, or if the
   * file is new or has changed since the build.
   */
  def whyUnread(path: Hash, state: State): Option[Reason.Value] = FileDictionary.unread.collectFirst {
    case (length, reason) if find(path, State(length, state.modified)).nonEmpty => reason
  }
}

/** The dictionaries that this driver has fetched. The driver caches each dictionary, up to a memory limit. */
object FileDictionary {
  /**
   * If the index proves nothing about a file, the front end sends one of these negative numbers instead of the file's
   * length. Each number stands for a reason. `FileState` in `sieve/metadata/file_list.py` uses the same numbers.
   */
  private val unread = Map(-1L -> Reason.UnprovenFile, -2L -> Reason.UnsettledFile)
  private val (pathKey, stateKey) = {
    val random = new SecureRandom
    (Hash(random.nextLong, random.nextLong), Hash(random.nextLong, random.nextLong))
  }
  private val cached = new LruMap[String, FileDictionary](Long.MaxValue)
  private val capacity = Runtime.getRuntime.maxMemory / 8

  def get(id: String): Option[FileDictionary] = cached.synchronized(Option(cached.get(id)))

  /**
   * Decodes the dictionary in an answer of the front end, and adds it to the cache. Each refresh of an index creates a
   * new dictionary. If the cache exceeds its memory limit, this method removes the least recently used dictionaries.
   */
  def add(id: String, answer: JsonNode): FileDictionary = {
    val made = read(answer)
    cached.synchronized {
      cached.put(id, made)
      var bytes = cached.values.asScala.map(_.bytes).sum
      val eldest = cached.values.iterator
      while (bytes > capacity && cached.size > 1) {
        bytes -= eldest.next().bytes
        eldest.remove()
      }
    }
    made
  }

  def hash(path: Path): Hash = hash(path.toString.getBytes(UTF_8))

  private def hash(path: Array[Byte]): Hash = new SipHash(pathKey).of(path)

  private def hash(path: Hash, state: State): Hash = new SipHash(stateKey).of(
    ByteBuffer.allocate(4 * java.lang.Long.BYTES)
      .putLong(path.high).putLong(path.low).putLong(state.length).putLong(state.modified).array)

  /**
   * Decodes the dictionary in an answer of the front end. Decompresses one path at a time and stores only its hash,
   * because all paths together might not fit into the driver's memory.
   */
  def read(answer: JsonNode): FileDictionary = {
    val files = answer.get("files").asInt
    val (rows, texts) = (stream(answer, "rows"), stream(answer, "paths"))
    val (paths, high, low) = (new Array[Long](files), new Array[Long](files), new Array[Long](files))
    val ranges = new Array[Int](files)
    try {
      for (i <- 0 until files) {
        val state = State(long(rows), long(rows))
        // The row contains the number of cuts; a file with k cuts has k + 1 ranges.
        ranges(i) = long(rows).toInt + 1
        val text = new Array[Byte](long(rows).toInt)
        texts.readFully(text)
        val path = hash(text)
        val both = hash(path, state)
        paths(i) = path.high
        high(i) = both.high
        low(i) = both.low
      }
    } finally Seq(rows, texts).foreach(_.close())
    val (byPath, ofPath) = Buckets.of(paths)
    val (byFile, ofFile) = Buckets.of(high)
    val numbers = new Array[Int](files)
    ofFile.indices.foreach(i => numbers(ofFile(i)) = i)
    new FileDictionary(
      moved(paths, ofPath), byPath, moved(high, ofFile), moved(low, ofFile), numbers, byFile,
      if (ranges.distinct.length == 1) ranges.take(1) else ranges)
  }

  private def moved(values: Array[Long], places: Array[Int]): Array[Long] = {
    val made = new Array[Long](values.length)
    values.indices.foreach(i => made(places(i)) = values(i))
    made
  }

  private def stream(answer: JsonNode, name: String) =
    new DataInputStream(new BufferedInputStream(Unpack.stream(answer.get(name))))

  private def long(in: DataInputStream): Long = reverseBytes(in.readLong())
}
