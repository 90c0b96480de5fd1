package org.apache.spark.sql.sieve

import java.util.{Base64, BitSet, HashMap => JHashMap, LinkedHashMap => LruMap}
import java.util.concurrent.{ConcurrentHashMap, TimeUnit, TimeoutException}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, PartitionDirectory}

/**
 * What is left of a listing, which indexes were asked, and why files were read, by reason; what is
 * `skipped` of it; `unproven` tells of a file whether it is read because it is none that they know;
 * `detail` says more of a reason; `narrows`: the indexes took more of the filter than IS NOT NULL.
 */
final case class Pruned(
    kept: Seq[PartitionDirectory], used: Seq[String], reasons: Map[String, Long],
    skipped: Seq[PartitionDirectory] = Nil,
    unproven: (InternalRow, FileStatusWithMetadata) => Option[String] = (_, _) => None,
    detail: String = "", narrows: Boolean = false)

/** What was asked before the files were listed, and how many nanoseconds that took. */
final case class Ahead(question: Asked, nanos: Long) {
  private val made = System.nanoTime
  /** Or an index that was refreshed meanwhile may have more to say. */
  def isRecent: Boolean = System.nanoTime - made < TimeUnit.SECONDS.toNanos(10)
}

/**
 * A file as an index knows it: its ordinal, and the state it had when it was read; a length below
 * zero is that of a file which proves nothing, `unsettled` one that was not read yet.
 */
final case class Known(ordinal: Int, state: State) {
  def unsettled: Boolean = state.length == -2
}

/**
 * Asks the front end which files may be dropped and drops them. The one place where a failure
 * becomes "read everything": counted, logged once a cause, and an error under `strict`.
 */
object Pruner extends Logging {
  private val fatal = Set("index-corrupt", "index-gone", "version-too-new", "error")
  private val warned = ConcurrentHashMap.newKeySet[String]()
  /** By path, once for each of so many states in all. */
  private final class Dictionary(val states: Int) extends JHashMap[Path, List[Known]](states * 2)
  private val dictionaries = new LruMap[String, Dictionary](16, 0.75f, true)
  // An eighth of the driver's memory, at some 650 bytes a state.
  private val mostStates = Runtime.getRuntime.maxMemory / 8 / 650

  def prune(
      index: SieveFileIndex, listed: Seq[PartitionDirectory], filters: Seq[Expression]): Pruned = {
    val strict = Settings.strict(index.executing)
    val ahead = index.asked()
    val total = listed.map(_.files.size.toLong).sum
    def unpruned(reason: String): Pruned = Pruned(listed, Nil, Map(reason -> total))
    def fallback(reason: String, detail: String): Pruned = {
      if (strict) throw new SieveException(
        "SIEVE_STRICT", s"the index of ${index.table.identifier.unquotedString} was not used: " +
          s"$reason: $detail. Repair it, or set spark.sieve.strict = false to read all files.",
        state = "55000")
      if (warned.size < 1000 && warned.add(s"$reason $detail")) {
        logWarning(s"sieve: ${index.table.identifier.unquotedString} is read in full: $reason: $detail")
      }
      unpruned(reason).copy(detail = detail)
    }
    if (filters.isEmpty) unpruned("no-predicate")
    else try Counters.timed(ahead.fold(0L)(_.nanos)) {
      val locations = Locations.of(index.relation)
      val instant = Hudi.asOf(index.relation).map { at =>
        Instant(at, listed.exists(d => d.files.exists(locations.of(d.values, _).exists(_.written.nonEmpty))))
      }
      // The files behind an answer are asked for with it, so that a slow front end counts once.
      val (reply, known) = Breaker.guard {
        val asked = body(index, filters, instant, Marks.of(index))
        val reply = Link.prune(index.executing, asked, ahead.map(_.question), identity[JsonNode])
        val files = Option(reply.get("dictionary")).map(id => dictionary(index, id.asText))
        (reply, files)
      }
      val told = counts(reply.get("reasons"))
      // What is wrong with one index is told even where another one served.
      told.keys.find(fatal).foreach(r => fallback(r, reply.get("detail").asText))
      val pruned = known.fold(Pruned(listed, Nil, told.map { case (reason, _) => reason -> total }))(
        drop(listed, locations, reply, _, told))
      pruned.copy(detail = reply.path("detail").asText)
    } catch {
      case e: SieveException if strict => throw e
      case e: InterruptedException => throw e
      case _: TimeoutException => fallback("timeout", "the front end did not answer in time")
      case e: FrontendDown => fallback("front-end-down", e.getMessage)
      // A Spark whose classes are others than those this was compiled for must not fail queries.
      case e @ (NonFatal(_) | _: LinkageError) => fallback("error", String.valueOf(e.getMessage))
    }
  }

  /**
   * Asks what a scan will want to know when it lists its files, so that it need not wait for it then.
   * Of an earlier instant it can be asked only then.
   */
  def ahead(index: SieveFileIndex, filters: Seq[Expression]): Option[Ahead] =
    if (filters.isEmpty || Breaker.isOpen || Hudi.isAsOf(index.relation)) None
    else try {
      val start = System.nanoTime
      Link.ahead(index.executing, body(index, filters, None, Marks.likely(index)))
        .map(Ahead(_, System.nanoTime - start))
    } catch { case NonFatal(_) | _: LinkageError => None }

  /** The instant of a query, ms since the epoch; whether it sees some of what it lists in part. */
  private final case class Instant(millis: Long, inPart: Boolean)

  private def body(
      index: SieveFileIndex, filters: Seq[Expression], instant: Option[Instant],
      marks: Seq[String]): String = {
    val predicate = Filters.of(index.scan.output, index.relation).conjunction(filters)
    Link.body(index.executing, "prune", { body =>
      body.set[ObjectNode]("table", Tables.identity(index.table))
      val registrations = body.putObject("registrations")
      index.entry.registrations.foreach { case (k, v) => registrations.put(k, v) }
      marks.foreach(body.withArray("fingerprints").add(_))
      body.set[ObjectNode]("predicate", predicate)
      instant.foreach(at => body.put("instant", at.millis).put("in_part", at.inPart))
    })
  }

  /** What an answer says of files by their ordinals, of all that was ever written to them, too. */
  private class Answer(known: Dictionary, reply: JsonNode) {
    private val skip = bits("skip")
    private val (skipInPart, knownInPart) = (bits("skip_in_part"), bits("known_in_part"))

    /** Whether a location may be skipped; else why nothing the indexes say holds for it. */
    def skips(location: Option[Location]): Either[String, Boolean] =
      location.map(now => (now, known.getOrDefault(now.path, Nil))) match {
        case None => Left("changed-file")
        case Some((_, Nil)) => Left("new-file")
        case Some((now, states)) =>
          def ordinal(of: Option[State]) = of.flatMap(s => states.find(_.state == s)).map(_.ordinal)
          val told = ordinal(now.shown).map(skip.get) ++
            ordinal(now.written).filter(knownInPart.get).map(skipInPart.get)
          def young = states.exists(k => k.unsettled && now.shown.exists(_.modified == k.state.modified))
          if (told.nonEmpty) Right(told.exists(identity))
          else Left(if (young) "unsettled-file" else "changed-file")
      }

    private def bits(name: String): BitSet = Option(reply.get(name)).fold(new BitSet)(node =>
      BitSet.valueOf(Base64.getDecoder.decode(node.asText)))
  }

  private def drop(
      listed: Seq[PartitionDirectory], locations: Locations, reply: JsonNode,
      known: Dictionary, told: Map[String, Long]): Pruned = {
    val answer = new Answer(known, reply)
    val seen = mutable.Map.empty[String, Long].withDefaultValue(0L)
    val (kept, skipped) = listed.map { directory =>
      val (files, rest) = directory.files.partition { file =>
        answer.skips(locations.of(directory.values, file)) match {
          case Left(reason) => seen(reason) += 1; true
          case Right(skips) => !skips
        }
      }
      if (rest.isEmpty) (directory, directory.copy(files = Nil))
      else (directory.copy(files = files), directory.copy(files = rest))
    }.unzip
    val used = reply.get("used").elements.asScala.map(_.asText).toList
    Pruned(
      kept.filter(_.files.nonEmpty), used, told ++ seen, skipped.filter(_.files.nonEmpty),
      (values, file) => answer.skips(locations.of(values, file)).left.toOption,
      narrows = reply.path("narrows").asBoolean)
  }

  /** The files of one state of a table's indexes, told once by the front end and kept. */
  private def dictionary(index: SieveFileIndex, id: String): Dictionary =
    Option(dictionaries.synchronized(dictionaries.get(id))).getOrElse {
      // A list that comes too late for this scan is kept for the next one.
      val asked = Link.body(index.executing, "dictionary", _.put("dictionary", id))
      Link.prune(index.executing, asked, None, { reply =>
        val made = read(reply)
        keep(id, made)
        made
      })
    }

  /** Keeps a list, and of the others those used last: each refresh makes a new one of all files. */
  private def keep(id: String, made: Dictionary): Unit = dictionaries.synchronized {
    dictionaries.put(id, made)
    var states = dictionaries.values.asScala.map(_.states.toLong).sum
    val eldest = dictionaries.values.iterator
    while (states > mostStates && dictionaries.size > 1) {
      states -= eldest.next().states
      eldest.remove()
    }
  }

  private def read(reply: JsonNode): Dictionary = {
    val (paths, lengths, times) = (reply.get("paths"), reply.get("lengths"), reply.get("times"))
    val made = new Dictionary(paths.size)
    for (i <- 0 until paths.size) {
      val path = new Path(paths.get(i).asText)
      val known = Known(i, State(lengths.get(i).asLong, times.get(i).asLong))
      made.put(path, known :: made.getOrDefault(path, Nil))
    }
    made
  }

  private def counts(node: JsonNode): Map[String, Long] =
    if (node == null) Map.empty
    else node.fieldNames.asScala.map(k => k -> node.get(k).asLong).toMap
}
