package org.apache.spark.sql.sieve

import java.util.{Base64, BitSet}
import java.util.concurrent.{TimeoutException, TimeUnit}
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, PartitionDirectory}
import org.apache.spark.sql.sieve.Reason.Reason

/**
 * What pruning made of a listing.
 *
 * @param used     indexes that were asked
 * @param reasons  why files were read, with how many
 * @param unproven why no index knows a file of the listing; None for one that some index knows
 * @param detail   says more of a reason
 * @param narrows  whether the indexes took more of the filter than IS NOT NULL
 */
final case class Pruned(
    kept: Seq[PartitionDirectory], used: Seq[String], reasons: Map[Reason, Long],
    skipped: Seq[PartitionDirectory] = Nil,
    unproven: (InternalRow, FileStatusWithMetadata) => Option[Reason] = (_, _) => None,
    detail: String = "", narrows: Boolean = false)

object Pruned {
  /** The whole listing, for one reason. */
  def nothing(listed: Seq[PartitionDirectory], reason: Reason, detail: String = ""): Pruned =
    Pruned(listed, Nil, Map(reason -> files(listed)), detail = detail)

  def files(directories: Seq[PartitionDirectory]): Long = directories.map(_.files.size.toLong).sum
}

/** A question sent before the files were listed, and how many nanoseconds sending it took. */
final case class Prefetch(question: Sent, nanos: Long) {
  private val made = System.nanoTime
  /** An index that was refreshed since may have more to say. */
  def isRecent: Boolean = System.nanoTime - made < TimeUnit.MILLISECONDS.toNanos(Policy.limit("prefetch_ms"))
}

/**
 * Asks the front end which files may be dropped and drops them. The one place where a failure
 * becomes "read everything": counted, logged once a cause, and an error under `strict`.
 */
object Pruner extends OnceLogging {
  def prune(
      index: SieveFileIndex, listed: Seq[PartitionDirectory], filters: Seq[Expression]): Pruned = {
    val strict = Settings.strict(index.executing)
    val prefetched = index.takePrefetched()
    val table = index.table.identifier.unquotedString
    def fallback(reason: Reason, detail: String): Pruned = {
      if (strict) throw new SieveException(
        "SIEVE_STRICT", s"the index of $table was not used: $reason: $detail. Repair it, or set " +
          "spark.sieve.strict = false to read all files.", state = "55000")
      warnOnce(s"$table is read in full: $reason: $detail")
      Pruned.nothing(listed, reason, detail)
    }
    if (filters.isEmpty) Pruned.nothing(listed, Reason.NoPredicate)
    // No row satisfies it, of whichever file: a join whose other side is empty.
    else if (filters.contains(Literal.FalseLiteral)) Pruned(Nil, Nil, Map.empty, listed)
    else try Counters.timed(prefetched.fold(0L)(_.nanos)) {
      val locations = Locations.of(index.relation)
      val asOf = Hudi.asOf(index.relation).map { millis =>
        val partial = listed.exists(d => d.files.exists(locations.of(d.values, _).exists(_.written.nonEmpty)))
        Map("instant" -> millis, "in_part" -> partial)
      }
      // The dictionary behind an answer is asked for with it, so that a slow front end counts once.
      val (reply, known) = CircuitBreaker.guard {
        val asked = question(index, filters, FingerprintCache.update(index), asOf.getOrElse(Map.empty))
        val reply = FrontendClient.prune(index.executing, asked, prefetched.map(_.question), identity[JsonNode])
        (reply, Option(reply.get("dictionary")).map(id => dictionary(index, id.asText)))
      }
      val (reasons, detail) = (Reason.counts(reply.get("reasons")), reply.path("detail").asText)
      // What is wrong with one index is reported even where another one served.
      reasons.keys.find(Reason.failures).foreach(fallback(_, detail))
      val pruned = known.fold(
        Pruned(listed, Nil, reasons.map { case (reason, _) => reason -> Pruned.files(listed) }))(
        drop(listed, locations, reply, _, reasons))
      pruned.copy(detail = detail)
    } catch {
      case e: SieveException if strict => throw e
      case e: InterruptedException => throw e
      case _: TimeoutException => fallback(Reason.Timeout, "the front end did not answer in time")
      case e: FrontendDown => fallback(Reason.FrontEndDown, e.getMessage)
      // A Spark whose classes are others than those this was compiled for must not fail queries.
      case e @ (NonFatal(_) | _: LinkageError) => fallback(Reason.Error, String.valueOf(e.getMessage))
    }
  }

  /**
   * Asks what a scan will want to know when it lists its files, so that it need not wait for it then.
   * A query of an earlier instant cannot: its question depends on the listing.
   */
  def prefetch(index: SieveFileIndex, filters: Seq[Expression]): Option[Prefetch] =
    if (filters.isEmpty || CircuitBreaker.isOpen || Hudi.isAsOf(index.relation)) None
    else try {
      val start = System.nanoTime
      FrontendClient.prefetch(index.executing, question(index, filters, FingerprintCache.likely(index)))
        .map(Prefetch(_, System.nanoTime - start))
    } catch { case NonFatal(_) | _: LinkageError => None }

  private def question(
      index: SieveFileIndex, filters: Seq[Expression], fingerprints: Seq[String],
      asOf: Map[String, Any] = Map.empty): String =
    FrontendClient.body(index.executing, "prune", Map(
      "table" -> Tables.identity(index.table), "registrations" -> index.entry.registrations,
      "fingerprints" -> fingerprints,
      "predicate" -> Filters.of(index.scan.output, index.relation).conjunction(filters)) ++ asOf)

  /** The files of one state of a table's indexes; one that comes too late for this scan serves the next. */
  private def dictionary(index: SieveFileIndex, id: String): FileDictionary =
    FileDictionary.get(id).getOrElse(FrontendClient.prune(
      index.executing, FrontendClient.body(index.executing, "dictionary", Map("dictionary" -> id)),
      None, FileDictionary.add(id, _)))

  /** What an answer says of files by their ordinals, as they are shown and with all that was written. */
  private class Answer(known: FileDictionary, reply: JsonNode) {
    private val skip = bits("skip")
    private val (skipWritten, knownWritten) = (bits("skip_in_part"), bits("known_in_part"))

    /** Whether a location may be skipped; else why nothing the indexes say holds for it. */
    def skips(location: Option[Location]): Either[Reason, Boolean] =
      location.map(now => (now, known.of(now.path))) match {
        case None => Left(Reason.ChangedFile)
        case Some((_, Nil)) => Left(Reason.NewFile)
        case Some((now, states)) =>
          def ordinal(of: Option[State]) = of.flatMap(s => states.find(_.state == s)).map(_.ordinal)
          val verdicts = ordinal(now.shown).map(skip.get) ++
            ordinal(now.written).filter(knownWritten.get).map(skipWritten.get)
          def racy = states.exists(k => k.isRacy && now.shown.exists(_.modified == k.state.modified))
          if (verdicts.nonEmpty) Right(verdicts.exists(identity))
          else Left(if (racy) Reason.UnsettledFile else Reason.ChangedFile)
      }

    private def bits(name: String): BitSet = Option(reply.get(name)).fold(new BitSet)(node =>
      BitSet.valueOf(Base64.getDecoder.decode(node.asText)))
  }

  private def drop(
      listed: Seq[PartitionDirectory], locations: Locations, reply: JsonNode,
      known: FileDictionary, reasons: Map[Reason, Long]): Pruned = {
    val answer = new Answer(known, reply)
    val unknown = mutable.Map.empty[Reason, Long].withDefaultValue(0L)
    val (kept, skipped) = listed.map { directory =>
      val (files, rest) = directory.files.partition { file =>
        answer.skips(locations.of(directory.values, file)) match {
          case Left(reason) => unknown(reason) += 1; true
          case Right(skips) => !skips
        }
      }
      (if (rest.isEmpty) directory else directory.copy(files = files), directory.copy(files = rest))
    }.unzip
    Pruned(
      kept.filter(_.files.nonEmpty), reply.get("used").elements.asScala.map(_.asText).toList,
      reasons ++ unknown, skipped.filter(_.files.nonEmpty),
      (values, file) => answer.skips(locations.of(values, file)).left.toOption,
      narrows = reply.path("narrows").asBoolean)
  }
}
