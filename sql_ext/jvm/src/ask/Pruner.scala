package org.apache.spark.sql.sieve.ask

import java.util.BitSet
import java.util.concurrent.{TimeoutException, TimeUnit}
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, PartitionDirectory}
import org.apache.spark.sql.sieve.base.Reason.Reason
import org.apache.spark.sql.sieve.base.{Failure, OnceLogging, Reason, Settings, SieveException, Unpack}
import org.apache.spark.sql.sieve.catalog.TableIdentity
import org.apache.spark.sql.sieve.formats.{ByteRange, FileCuts, FilePart, FileRanges, Location, Locations}
import org.apache.spark.sql.sieve.formats.{Fingerprint, TableFormat, WholeRecords}
import org.apache.spark.sql.sieve.predicate.{Filters, TopK}

/**
 * The listing of a scan after pruning.
 *
 * @param remaining    the files to read, restricted to ranges if the scan needs only some ranges
 * @param ranges       the number of ranges in all files, and the number of ranges that the scan reads
 * @param used         the names of the indexes that evaluated the scan's filter
 * @param reasons      why the scan reads files that an index might have skipped: for each reason, the number of files
 * @param skipped      the files that the scan skips, and the ranges that it skips in other files
 * @param bytesSkipped the number of bytes that the scan does not read
 * @param rangesOf     returns the number of ranges of a listed file, or the reason why no index covers the file
 * @param detail       an explanation of a reason
 * @param functions    the names of functions in the filter that no index can evaluate
 * @param narrows      whether the indexes evaluated anything in the filter other than IS NOT NULL
 */
final case class Pruned(
    remaining: Seq[PartitionDirectory], ranges: RangeCounts, used: Seq[String], reasons: Map[Reason, Long],
    skipped: Seq[PartitionDirectory] = Nil, bytesSkipped: Long = 0,
    rangesOf: (InternalRow, FileStatusWithMetadata) => Either[Reason, Int] = (_, _) => Right(1),
    detail: String = "", functions: Seq[String] = Nil, narrows: Boolean = false) {
  /** The number of files that the scan skips as a whole. */
  lazy val filesSkipped: Long = Pruned.count(skipped)(FileRanges.of(_).isEmpty)
}

final case class RangeCounts(total: Long, read: Long)

object Pruned {
  /** The result for a scan that skips no file, with the same reason for all files. */
  def nothing(listed: Seq[PartitionDirectory], reason: Reason, detail: String = ""): Pruned =
    whole(listed, Map(reason -> files(listed)), detail)

  /** The result for a scan that skips no file, with the number of files for each reason. */
  def whole(listed: Seq[PartitionDirectory], reasons: Map[Reason, Long], detail: String = ""): Pruned =
    Pruned(listed, RangeCounts(files(listed), files(listed)), Nil, reasons, detail = detail)

  def files(directories: Seq[PartitionDirectory]): Long = directories.map(_.files.size.toLong).sum

  def bytes(directories: Seq[PartitionDirectory]): Long = {
    var sum = 0L
    for (directory <- directories; file <- directory.files) sum += FileRanges.bytes(file)
    sum
  }

  private def count(directories: Seq[PartitionDirectory])(is: FileStatusWithMetadata => Boolean): Long =
    directories.map(_.files.count(is).toLong).sum
}

/** A request that a scan sent before it listed its files. Sending the request took `nanos` nanoseconds. */
final case class Prefetch(request: Sent, nanos: Long) {
  private val sentAt = System.nanoTime
  /**
   * True if the request was sent within the last ten seconds. Since an older request, a refresh may have changed the
   * index.
   */
  def isRecent: Boolean = System.nanoTime - sentAt < TimeUnit.SECONDS.toNanos(10)
}

/**
 * Asks the front end which files a scan can skip, and removes these files from the listing. If the request fails, the
 * scan reads all files. No other object decides which files a scan skips. The driver counts each failure, and logs each
 * cause once. With `spark.sieve.strict`, a failure makes the query fail.
 */
object Pruner extends OnceLogging {
  /**
   * Removes the files that a scan can skip from the scan's listing.
   *
   * @param inRanges whether the scan can read single ranges of files
   * @param first    the sort orders of a top-k query; None if the query needs all rows that satisfy the filters
   */
  def prune(
      index: IndexedScan, listed: Seq[PartitionDirectory], filters: Seq[Expression],
      inRanges: Boolean, first: Option[TopK] = None): Pruned = {
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
    def withoutPredicate = if (index.mixesPartitions) Reason.UnsupportedPredicate else Reason.NoPredicate
    if (first.isEmpty && filters.forall(TableFormat.addsFilter)) Pruned.nothing(listed, withoutPredicate)
    // If the other side of a join is empty, a filter becomes the literal FALSE, and no row satisfies the filters.
    else if (filters.contains(Literal.FalseLiteral))
      Pruned(Nil, RangeCounts(Pruned.files(listed), 0), Nil, Map.empty, listed, Pruned.bytes(listed))
    else try Counters.timed(prefetched.fold(0L)(_.nanos)) {
      val locations = TableFormat.of(index.relation).locations(index.relation)
      val asOf = TableFormat.of(index.relation).asOf(index.relation).map { millis =>
        val partial = listed.exists(d => d.files.exists(locations.of(d.values, _).exists(_.written.nonEmpty)))
        Map("instant" -> millis, "in_part" -> partial)
      }
      // A scan requests an answer, and then the answer's dictionary. The circuit breaker treats both requests as one
      // call, because a slow front end must count as one failure.
      val (reply, known) = CircuitBreaker.guard {
        val fingerprints = FingerprintCache.update(index)
        def ask(more: Map[String, Any], ahead: Option[Prefetch]) = {
          def sent(more: Map[String, Any], ahead: Option[Prefetch]) = FrontendClient.prune(
            index.executing, question(index, filters, first, fingerprints, asOf.getOrElse(Map.empty) ++ more),
            ahead.map(_.request), identity[JsonNode])
          // The first request contains only hashes of the fingerprints. If the front end does not know a hash, a second
          // request also contains the parts of the fingerprints.
          val reply = sent(more, ahead) match {
            case unknown if unknown.has("unknown") =>
              sent(more + ("parts" -> fingerprints.map(one => one.hash -> one.parts).toMap), None)
            case known => known
          }
          (reply, Option(reply.get("dictionary")).map(id => dictionary(index, id.asText)))
        }
        // For a top-k query, the front end counts rows. Rows of unlisted files must not count, so another request names
        // the listed files by their numbers in the dictionary. Between the two requests, another scan may open a
        // further index of the table. The second answer then has another dictionary, and the scan sends the second
        // request again.
        def bounded(answered: (JsonNode, Option[FileDictionary]), times: Int): (JsonNode, Option[FileDictionary]) =
          answered match {
            case (reply, Some(known)) if first.nonEmpty && times > 0 =>
              val groups = TopKGroups.of(listed, locations, known, index.relation, first.get)
              val next = ask(Map("present" -> Map("dictionary" -> reply.get("dictionary"), "groups" -> groups)), None)
              if (next._2.forall(_ eq known)) next else bounded(next, times - 1)
            case _ => answered
          }
        bounded(ask(Map.empty, prefetched), 3)
      }
      val (reasons, detail) = (Reason.counts(reply.get("reasons")).map {
        case (Reason.NoPredicate, files) => withoutPredicate -> files
        case other => other
      }, reply.path("detail").asText)
      // Reports the failure of an index, even if another index has evaluated the filter.
      reasons.keys.find(Reason.failures).foreach(fallback(_, detail))
      def unused = Pruned.whole(listed, reasons.map { case (reason, _) => reason -> Pruned.files(listed) })
      val opening = if (inRanges) Some(index.executing.sessionState.conf.filesOpenCostInBytes) else None
      known.fold(unused) { files =>
        val numbers =
          if (TableFormat.of(index.relation).keepsStatuses) Some(files.numbersOf(listed, locations)) else None
        val pruned = drop(listed, locations, numbers, new Answer(files, reply), opening)
        if (dependsOnSplits(index, pruned)) Pruned.nothing(listed, Reason.WholeFile)
        else pruned.copy(
          used = reply.get("used").elements.asScala.map(_.asText).toList,
          reasons = reasons ++ pruned.reasons, narrows = reply.path("narrows").asBoolean)
      }.copy(detail = detail, functions = reply.path("functions").elements.asScala.map(_.asText).toList)
    } catch {
      case e: SieveException if strict => throw e
      case e: InterruptedException => throw e
      case _: TimeoutException => fallback(Reason.Timeout, "the front end did not answer in time")
      case e: FrontendDown => fallback(Reason.FrontEndDown, e.getMessage)
      // A query must not fail because Spark's classes differ from the classes with which Sieve was compiled.
      case e @ Failure() => fallback(Reason.Error, String.valueOf(e.getMessage))
    }
  }

  /**
   * Sends a scan's request before the scan lists its files, so that the front end answers during the listing. A query
   * of an earlier state of the table sends no early request, because its request depends on the listed files.
   */
  def prefetch(
      index: IndexedScan, filters: Seq[Expression], first: Option[TopK]): Option[Prefetch] =
    if (first.isEmpty && filters.forall(TableFormat.addsFilter) || CircuitBreaker.isOpen || TableFormat.of(index.relation).isAsOf(index.relation)) None
    else try {
      val start = System.nanoTime
      val body = question(index, filters, first, FingerprintCache.likely(index))
      FrontendClient.prefetch(index.executing, body).map(Prefetch(_, System.nanoTime - start))
    } catch { case Failure() => None }

  private def question(
      index: IndexedScan, filters: Seq[Expression], first: Option[TopK],
      fingerprints: Seq[Fingerprint], more: Map[String, Any] = Map.empty): String = {
    val made = Filters.of(index.scan.output, index.relation, index.expressions)
    FrontendClient.body(index.executing, "prune", Map(
      "table" -> TableIdentity.of(index.table), "registrations" -> index.entry.registrations,
      "fingerprints" -> fingerprints.map(_.hash),
      "predicate" -> made.conjunction(filters.filterNot(TableFormat.addsFilter))) ++
      first.map("top_k" -> made.orders(_, filters)) ++ more)
  }

  /**
   * True if Spark could fail on the remaining files. If a scan skips files, Spark makes smaller splits of the remaining
   * files. Spark fails if a `.zstd` text file has two splits.
   */
  private def dependsOnSplits(index: IndexedScan, pruned: Pruned): Boolean =
    pruned.skipped.nonEmpty && WholeRecords.isText(index.relation) &&
      pruned.remaining.exists(_.files.exists(file => FileCuts.isZstd(file.getPath)))

  /**
   * Returns a dictionary from the cache or from the front end. A dictionary that arrives after the time-out is cached
   * for the next scan.
   */
  private def dictionary(index: IndexedScan, id: String): FileDictionary =
    FileDictionary.get(id).getOrElse(FrontendClient.prune(
      index.executing, FrontendClient.body(index.executing, "dictionary", Map("dictionary" -> id)),
      None, FileDictionary.add(id, _)))

  /**
   * An answer of the front end. Each set in an answer has one bit for each file number. `skip` considers only those
   * rows of a file that readers return. `skipWritten` and `knownWritten` consider all written rows.
   */
  private class Answer(known: FileDictionary, reply: JsonNode) {
    private val skip = bits("skip")
    private val parts = Option(reply.get("parts")).fold(FileParts.none)(FileParts.read)
    private val (skipWritten, knownWritten) = (bits("skip_in_part"), bits("known_in_part"))

    /**
     * Returns which ranges of a file a scan reads, and which ranges it skips. If the indexes prove nothing about the
     * file, returns the reason.
     */
    def of(location: Option[Location], length: Long): Either[Reason, Verdict] =
      location.map(now => (now, FileDictionary.hash(now.path))) match {
        case None => Left(Reason.ChangedFile)
        case Some((now, path)) =>
          val shown = known.lookUp(path, now.shown).map(verdict(_, length))
          val written = now.written.flatMap(known.find(path, _)).map(_.number).filter(knownWritten.get)
          if (written.exists(skipWritten.get)) Right(Verdict.whole(length, skips = true))
          else if (shown.isLeft && written.nonEmpty) Right(Verdict.whole(length, skips = false))
          else shown
      }

    /** Which ranges of a file a scan reads, and which ranges it skips. */
    def verdict(file: IndexedFile, length: Long): Verdict =
      parts.of(file.number, length).fold(Verdict.whole(length, skip.get(file.number), file.ranges)) {
        case (remaining, skipped) => Verdict(remaining, skipped, file.ranges)
      }

    /** True if the scan reads every file as a whole. */
    def skipsNothing: Boolean = (parts eq FileParts.none) && skip.isEmpty

    private def bits(name: String): BitSet = Option(reply.get(name)).fold(new BitSet)(node =>
      BitSet.valueOf(Unpack.bytes(node)))
  }

  /**
   * The ranges of a file that may contain a matching row, and the ranges that contain no matching row.
   *
   * @param ranges the number of ranges into which the index divides the file; 1 if the answer does not contain this
   *               number
   */
  private final case class Verdict(remaining: FilePart, skipped: Seq[ByteRange], ranges: Int) {
    def isMixed: Boolean = remaining.ranges.nonEmpty && skipped.nonEmpty

    /**
     * True if reading the remaining ranges costs more than reading the whole file. A reader opens the file and reads
     * the footer again for each group of adjacent ranges.
     */
    def isCostly(length: Long, opening: Long): Boolean =
      (remaining.stretches.size - 1) * opening.toDouble > length - remaining.bytes(length)
  }

  private object Verdict {
    def whole(length: Long, skips: Boolean, ranges: Int = 1): Verdict = {
      val all = Seq(ByteRange(0, length))
      if (skips) Verdict(FilePart(Nil, 0), all, ranges) else Verdict(FilePart(all, 0), Nil, ranges)
    }
  }

  /**
   * Removes the files and ranges that the scan can skip, according to the answer, from a listing.
   *
   * @param numbers the files' numbers; None if a file's status does not determine its location
   * @param opening the number of bytes that a scan can read in the time for opening a file; None if the scan can read
   *                only whole files
   */
  private def drop(
      listed: Seq[PartitionDirectory], locations: Locations, numbers: Option[ListedNumbers], answer: Answer,
      opening: Option[Long]): Pruned = {
    val pruned = numbers.filter(all => answer.skipsNothing && all.areKnown).fold(
      divided(listed, locations, numbers.map(_.iterator), answer, opening))(
      all => Pruned(listed.filter(_.files.nonEmpty), RangeCounts(all.ranges, all.ranges), Nil, Map.empty))
    pruned.copy(rangesOf = (values, file) => answer.of(locations.of(values, file), file.getLen).map(_.ranges))
  }

  /**
   * Divides a listing into the files that a scan reads and the files that the scan skips.
   *
   * @param found for each file, the file in the dictionary, or the reason why no index covers the file
   */
  private def divided(
      listed: Seq[PartitionDirectory], locations: Locations, found: Option[Iterator[Either[Reason, IndexedFile]]],
      answer: Answer, opening: Option[Long]): Pruned = {
    val reasons = mutable.Map.empty[Reason, Long].withDefaultValue(0L)
    var (total, read, bytesSkipped) = (0L, 0L, 0L)
    type Files = mutable.Builder[FileStatusWithMetadata, Seq[FileStatusWithMetadata]]
    /** Adds the part of a file that the scan reads, and the part that the scan skips. */
    def divide(values: InternalRow, file: FileStatusWithMetadata, remaining: Files, skipped: Files): Unit = {
      val verdict = found.fold(answer.of(locations.of(values, file), file.getLen))(
        _.next().map(answer.verdict(_, file.getLen))).fold(
        reason => { reasons(reason) += 1; Verdict.whole(file.getLen, skips = false) }, identity)
      val isWhole = verdict.isMixed && opening.forall(verdict.isCostly(file.getLen, _))
      if (isWhole) reasons(Reason.WholeFile) += 1
      total += verdict.ranges
      read += (if (isWhole || verdict.skipped.isEmpty) verdict.ranges else verdict.remaining.ranges.size)
      if (!isWhole && verdict.skipped.nonEmpty) bytesSkipped += file.getLen - verdict.remaining.bytes(file.getLen)
      if (verdict.remaining.ranges.isEmpty) skipped += file
      else if (verdict.skipped.isEmpty || isWhole) remaining += file
      else {
        remaining += FileRanges.restricted(file, verdict.remaining)
        skipped += FileRanges.restricted(file, FilePart(verdict.skipped, 0))
      }
    }
    val (remaining, skipped) = listed.map { directory =>
      val (remaining, skipped) = (Vector.newBuilder[FileStatusWithMetadata], Vector.newBuilder[FileStatusWithMetadata])
      directory.files.foreach(divide(directory.values, _, remaining, skipped))
      (directory.copy(files = remaining.result()), directory.copy(files = skipped.result()))
    }.unzip
    Pruned(
      remaining.filter(_.files.nonEmpty), RangeCounts(total, read), Nil, reasons.toMap,
      skipped.filter(_.files.nonEmpty), bytesSkipped)
  }
}
