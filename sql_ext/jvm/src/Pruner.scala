package org.apache.spark.sql.sieve

import java.util.{Base64, BitSet, HashMap => JHashMap, LinkedHashMap => LruMap, Map => JMap}
import java.util.concurrent.{ConcurrentHashMap, TimeoutException}

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
 * `skipped` of it; `unproven` tells of a file whether it is read because it is none that they know.
 */
final case class Pruned(
    kept: Seq[PartitionDirectory], used: Seq[String], reasons: Map[String, Long],
    skipped: Seq[PartitionDirectory] = Nil,
    unproven: (InternalRow, FileStatusWithMetadata) => Option[String] = (_, _) => None)

/**
 * A file as an index knows it: its ordinal, and the length and time it had when it was read; a
 * length below zero is that of a file which proves nothing, `unsettled` one that was not read yet.
 * `allRows` if all that was ever written to it is known, also what no query is shown.
 */
final case class Known(ordinal: Int, length: Long, modified: Long, allRows: Boolean) {
  def unsettled: Boolean = length == -2
}

/**
 * Asks the front end which files may be dropped and drops them. The one place where a failure
 * becomes "read everything": counted, logged once a cause, and an error under `strict`.
 */
object Pruner extends Logging {
  private val fatal = Set("index-corrupt", "index-gone", "version-too-new", "error")
  private val warned = ConcurrentHashMap.newKeySet[String]()
  private val dictionaries = new LruMap[String, JHashMap[Path, Known]](16, 0.75f, true) {
    override def removeEldestEntry(e: JMap.Entry[String, JHashMap[Path, Known]]): Boolean = size > 64
  }

  def prune(
      index: SieveFileIndex, listed: Seq[PartitionDirectory], filters: Seq[Expression]): Pruned = {
    val strict = Settings.strict(index.executing)
    val total = listed.map(_.files.size.toLong).sum
    def unpruned(reason: String): Pruned = Pruned(listed, Nil, Map(reason -> total))
    def fallback(reason: String, detail: String): Pruned = {
      if (strict) throw new SieveException(
        "SIEVE_STRICT", s"the index of ${index.table.identifier.unquotedString} was not used: " +
          s"$reason: $detail. Repair it, or set spark.sieve.strict = false to read all files.")
      if (warned.size < 1000 && warned.add(s"$reason $detail")) {
        logWarning(s"sieve: ${index.table.identifier.unquotedString} is read in full: $reason: $detail")
      }
      unpruned(reason)
    }
    if (filters.isEmpty) unpruned("no-predicate")
    else try Counters.timed {
      val predicate = Filters.of(index.scan.output, index.relation).conjunction(filters)
      val locations = Locations.of(index.relation)
      // The files behind an answer are asked for with it, so that a slow front end counts once.
      val (reply, known) = Breaker.guard {
        val reply = ask(index, predicate, inPart(listed, locations))
        val files = Option(reply.get("dictionary")).map(id => dictionary(index, id.asText))
        (reply, files)
      }
      val told = counts(reply.get("reasons"))
      // What is wrong with one index is told even where another one served.
      told.keys.find(fatal).foreach(r => fallback(r, reply.get("detail").asText))
      known.fold(Pruned(listed, Nil, told.map { case (reason, _) => reason -> total }))(
        drop(listed, locations, reply, _, told))
    } catch {
      case e: SieveException if strict => throw e
      case e: InterruptedException => throw e
      case _: TimeoutException => fallback("timeout", "the front end did not answer in time")
      case e: FrontendDown => fallback("front-end-down", e.getMessage)
      case NonFatal(e) => fallback("error", String.valueOf(e.getMessage))
    }
  }

  /** Whether a listing has something that a query of an earlier instant sees in part. */
  private def inPart(listed: Seq[PartitionDirectory], locations: Locations): Boolean =
    listed.exists(d => d.files.exists(locations.of(d.values, _).exists(_.inPart)))

  private def ask(index: SieveFileIndex, predicate: ObjectNode, inPart: => Boolean): JsonNode = {
    val marks = Seq(index.relation.sparkSession.asInstanceOf[Compat.Session], index.executing)
      .distinct.map(s => Fingerprint.of(index.relation, index.table, s).hash).distinct
    Link.prune(index.executing, "prune", { body =>
      body.set[ObjectNode]("table", Tables.identity(index.table))
      val registrations = body.putObject("registrations")
      index.entry.registrations.foreach { case (k, v) => registrations.put(k, v) }
      marks.foreach(body.withArray("fingerprints").add(_))
      body.set[ObjectNode]("predicate", predicate)
      Hudi.asOf(index.relation).foreach(body.put("instant", _).put("in_part", inPart))
    }, identity[JsonNode])
  }

  private def drop(
      listed: Seq[PartitionDirectory], locations: Locations, reply: JsonNode,
      known: JHashMap[Path, Known], told: Map[String, Long]): Pruned = {
    val skip = bits(reply.get("skip"))
    val seen = mutable.Map.empty[String, Long].withDefaultValue(0L)
    val (kept, skipped) = listed.map { directory =>
      val (files, rest) = directory.files.partition { file =>
        prove(known, locations.of(directory.values, file)) match {
          case Left(reason) => seen(reason) += 1; true
          case Right(ordinal) => !skip.get(ordinal)
        }
      }
      if (rest.isEmpty) (directory, directory.copy(files = Nil))
      else (directory.copy(files = files), directory.copy(files = rest))
    }.unzip
    val used = reply.get("used").elements.asScala.map(_.asText).toList
    Pruned(
      kept.filter(_.files.nonEmpty), used, told ++ seen, skipped.filter(_.files.nonEmpty),
      (values, file) => prove(known, locations.of(values, file)).left.toOption)
  }

  /** The ordinal of a location that is as it was; else why nothing the indexes say holds for it. */
  private def prove(
      known: JHashMap[Path, Known], location: Option[Location]): Either[String, Int] =
    location.map(now => (now, known.get(now.path))) match {
      case None => Left("changed-file")
      case Some((_, null)) => Left("new-file")
      case Some((now, k)) if k.unsettled && k.modified == now.modified => Left("unsettled-file")
      case Some((now, k)) if k.length != now.length || k.modified != now.modified => Left("changed-file")
      case Some((now, k)) if now.inPart && !k.allRows => Left("changed-file")
      case Some((_, k)) => Right(k.ordinal)
    }

  /** The files of one state of a table's indexes, told once by the front end and kept. */
  private def dictionary(index: SieveFileIndex, id: String): JHashMap[Path, Known] =
    Option(dictionaries.synchronized(dictionaries.get(id))).getOrElse {
      // A list that comes too late for this scan is kept for the next one.
      Link.prune(index.executing, "dictionary", _.put("dictionary", id), { reply =>
        val made = read(reply)
        dictionaries.synchronized(dictionaries.put(id, made))
        made
      })
    }

  private def read(reply: JsonNode): JHashMap[Path, Known] = {
    val (paths, lengths, times) = (reply.get("paths"), reply.get("lengths"), reply.get("times"))
    val allRows = bits(reply.get("all_rows"))
    val made = new JHashMap[Path, Known](paths.size * 2)
    for (i <- 0 until paths.size) {
      made.put(new Path(paths.get(i).asText),
        Known(i, lengths.get(i).asLong, times.get(i).asLong, allRows.get(i)))
    }
    made
  }

  private def bits(node: JsonNode): BitSet = BitSet.valueOf(Base64.getDecoder.decode(node.asText))

  private def counts(node: JsonNode): Map[String, Long] =
    if (node == null) Map.empty
    else node.fieldNames.asScala.map(k => k -> node.get(k).asLong).toMap
}
