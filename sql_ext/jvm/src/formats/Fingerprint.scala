package org.apache.spark.sql.sieve.formats

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.time.zone.ZoneRulesProvider
import java.util.{Locale, TimeZone}
import scala.collection.immutable.TreeMap
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.util.{CharVarcharUtils, ResolveDefaultColumns}
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.sieve.base.{Compat, TableProperties}
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.types._

/**
 * All settings and facts that decide how a reader interprets a file's bytes. Two readers with equal fingerprints return
 * equal values for the same file. The front end decides which parts of a fingerprint matter for a column.
 */
final case class Fingerprint(parts: TreeMap[String, String]) {
  lazy val hash: String = Fingerprint.digest(
    parts.map { case (k, v) => s"${k.length}:$k=${v.length}:$v" }.mkString("\n"))

  /** This fingerprint, with additional parts. */
  def and(more: Map[String, String]): Fingerprint = if (more.isEmpty) this else Fingerprint(parts ++ more)
}

object Fingerprint {
  private def digest(text: String): String =
    MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8)).map("%02x".format(_)).mkString

  // Every user with read access to a table can read the fingerprints in the manifests of the table's indexes. So a
  // fingerprint contains digests of secrets instead of the secrets.
  private val secret = """(?i)secret|password|token|credential|encryption\.key|security\.key""".r
  private val byName = Set("parquet", "hudi", "orc")
  /** The settings that decide how a literal's text is interpreted. */
  private val literalSettings = Seq("ansi.enabled", "ansi.doubleQuotedIdentifiers", "timestampType",
    "parser.escapedStringLiterals").map("spark.sql." + _)
  /**
   * Options that contain the folder of the files, or the instant that a query reads. The names of a file slice's files
   * already determine the folder and the instant, so fingerprints leave out these options.
   */
  private val ignoredOptions = Set("path", "as.of.instant")
  /** Fingerprints do not contain this setting, because Hudi sets it for each Hudi scan. */
  private val ignoredOfHudi = Seq("conf.spark.sql.parquet.enableVectorizedReader")
  /**
   * Fingerprints do not contain this setting, because Delta sets it for each session but does not use it. Each table
   * has its own column mapping instead.
   */
  private val ignoredOfDelta = Seq("conf.spark.sql.parquet.fieldId.read.enabled")
  private val reserved = "__sieve_"
  private val defaults = Seq(
    ResolveDefaultColumns.CURRENT_DEFAULT_COLUMN_METADATA_KEY,
    ResolveDefaultColumns.EXISTS_DEFAULT_COLUMN_METADATA_KEY)

  private def lower(text: String): String = text.toLowerCase(Locale.ROOT)

  def format(relation: HadoopFsRelation): String = relation.fileFormat match {
    case _ if Hudi.owns(relation.location) => "hudi"
    case own if Delta.isFormat(own) => "delta"
    case named: DataSourceRegister => lower(named.shortName())
    case other => other.getClass.getName
  }

  /** The fingerprint of a relation under the current settings of `session`. */
  def of(relation: HadoopFsRelation, table: CatalogTable, session: Compat.Session): Fingerprint =
    TableFormat.of(relation).reader(relation).fold(ofSparks(relation, table, session)) { parts =>
      Fingerprint(TreeMap((parts + ("spark" -> session.version.split('.').take(2).mkString("."))).toSeq: _*))
    }

  /** The fingerprint of Spark's own readers. */
  private def ofSparks(relation: HadoopFsRelation, table: CatalogTable, session: Compat.Session): Fingerprint = {
    val kind = format(relation)
    val text = WholeRecords.isText(relation)
    val settings = ReaderSettings.of(session)
    val columns = schema(relation, table, settings.keys ++ relation.options.keys)
    val conf = session.sessionState.conf
    val version = session.version
    val fixed = Seq(
      "format" -> s"$kind ${relation.fileFormat.getClass.getName}",
      "schema" -> columns.json,
      "partitions" -> partitions(relation).json,
      "spark" -> (if (text) version else version.split('.').take(2).mkString(".")),
      "case" -> conf.caseSensitiveAnalysis.toString)
    val options = relation.options.toSeq.map { case (k, v) => lower(k) -> v }
      .filterNot { case (k, _) => ignoredOptions(k) || k.startsWith(TableProperties.registrations) }
      // When a session resolves a Hudi table, Hudi copies the session's settings into the table's options. So the
      // fingerprint leaves out options that readers ignore.
      .collect { case (k, v) if kind != "hudi" || !Hudi.isHarmless(k) => s"option.$k" -> v }
    val zones =
      // ORC's reader converts a file's timestamps to the type of the table's column, whatever that type is.
      if (kind != "orc" && !zoned(columns, text)) Nil
      else Seq("zone.session" -> conf.sessionLocalTimeZone, "zone.jvm" -> TimeZone.getDefault.getID)
    val parsing =
      if (!text) Nil
      else Seq(
        // The part "records" distinguishes current builds from builds of earlier Sieve releases. Earlier builds read
        // only one column of each record, so their indexes prove nothing about queries of other columns.
        "records" -> "whole",
        "ansi" -> conf.ansiEnabled.toString, "corrupt" -> conf.columnNameOfCorruptRecord,
        // The names of months and days, and the rules of time zones, depend on the version of Java.
        "java" -> s"${Runtime.version.feature} ${ZoneRulesProvider.getVersions("Europe/London").lastEntry.getKey}")
    // A column's default is stored as SQL text, which each reader parses again.
    val literals =
      if (!columns.existsRecursively(hasDefault)) Nil
      else literalSettings.map(k => s"conf.$k" -> conf.getConfString(k))
    // The part "structs" distinguishes current builds from builds of earlier Sieve releases. Earlier builds read only
    // some fields of a struct, and so lost the struct's default.
    val structs = if (hasDefaultOfStruct(columns)) Seq("structs" -> "whole") else Nil
    // A build adds columns whose names have the prefix `reserved`. So if a table already has a column with this prefix,
    // no query uses an index of the table.
    val taken = (columns.fieldNames ++ relation.partitionSchema.fieldNames).toSeq
      .filter(lower(_).startsWith(reserved)).map("reserved" -> _)
    val own = kind match {
      case "hudi" => Hudi.fingerprint(relation, conf.getAllConfs) ++ settings -- ignoredOfHudi
      case "delta" => settings -- ignoredOfDelta + ("delta.mapping" -> DeltaColumns.mapping(relation.fileFormat))
      case _ => settings
    }
    val parts = (fixed ++ options ++ zones ++ parsing ++ literals ++ structs ++ taken ++ own).map {
      case (k, v) if secret.findFirstIn(k).isDefined => k -> s"SHA-256 ${digest(v)}"
      case other => other
    }
    Fingerprint(TreeMap(parts: _*))
  }

  /**
   * The columns of the table's files. If a query does not need all fields of a struct, the query's relation can lack
   * the unneeded fields. Readers of Parquet and, by default, readers of ORC find columns by name. So the remaining
   * fields keep their values, unless the struct's default is lost.
   */
  private def schema(
      relation: HadoopFsRelation, table: CatalogTable, settings: Iterable[String]): StructType = {
    val whole = CharVarcharUtils.replaceCharVarcharWithStringInSchema(table.dataSchema).asNullable
    lazy val named = byName(format(relation)) && !settings.exists(_.contains("positional"))
    // For a Delta table, the catalog may contain no columns, or only the columns of an earlier version.
    if (Delta.isFormat(relation.fileFormat)) DeltaColumns.schema(relation.fileFormat)
    else if (named && within(relation.dataSchema, whole)) whole else relation.dataSchema
  }

  private def partitions(relation: HadoopFsRelation): StructType =
    if (!Delta.isFormat(relation.fileFormat)) relation.partitionSchema
    else DeltaColumns.schema(relation.fileFormat, relation.partitionSchema.fieldNames.toSeq)

  private def within(part: DataType, whole: DataType): Boolean = (part, whole) match {
    case (p: StructType, w: StructType) =>
      val fields = w.fields.map(f => f.name -> f).toMap
      def default(f: StructField, key: String) = if (f.metadata.contains(key)) Some(f.metadata.getString(key)) else None
      p.fields.forall(f => fields.get(f.name).exists { g =>
        within(f.dataType, g.dataType) && defaults.forall(k => default(f, k) == default(g, k))
      })
    case (ArrayType(p, _), ArrayType(w, _)) => within(p, w)
    case (MapType(pk, pv, _), MapType(wk, wv, _)) => within(pk, wk) && within(pv, wv)
    // If a query needs only parts of a VARIANT, Spark reads the VARIANT as a struct of these parts.
    case (_, w) if w.typeName == "variant" => true
    case (p, w) => p == w
  }

  /**
   * True if the values of some column depend on a time zone. A date column depends on a time zone only if its dates are
   * stored as text.
   */
  private def zoned(columns: StructType, text: Boolean): Boolean = columns.existsRecursively {
    case DateType => text
    case BooleanType | BinaryType | NullType | _: NumericType | _: StringType => false
    case _: ArrayType | _: MapType => false
    case struct: StructType => hasDefault(struct)
    case _ => true
  }

  /**
   * True if a struct column has a default. Spark loses this default if a query needs only some fields of the struct. If
   * a file lacks the column, the query then returns NULL instead of the default.
   */
  private def hasDefaultOfStruct(columns: StructType): Boolean = columns.fields.exists(f =>
    defaults.exists(f.metadata.contains) && f.dataType.existsRecursively(_.isInstanceOf[StructType]))

  /**
   * True if a reader fills in a default for a field that a file lacks. The default that Spark inserts into new rows
   * does not affect readers.
   */
  private def hasDefault(t: DataType): Boolean = t match {
    case s: StructType =>
      s.fields.exists(_.metadata.contains(ResolveDefaultColumns.EXISTS_DEFAULT_COLUMN_METADATA_KEY))
    case _ => false
  }
}
