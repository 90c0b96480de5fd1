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
 * All that decides which values a reader makes of a file's bytes; equal fingerprints read equally. Which parts
 * decide on the values of one column, the front end knows.
 */
final case class Fingerprint(parts: TreeMap[String, String]) {
  lazy val hash: String = Fingerprint.digest(
    parts.map { case (k, v) => s"${k.length}:$k=${v.length}:$v" }.mkString("\n"))
}

object Fingerprint {
  private def digest(text: String): String =
    MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8)).map("%02x".format(_)).mkString

  // Whoever may read the table may read the parts in a manifest: a secret shows no more than a digest.
  private val secret = """(?i)secret|password|token|credential|encryption\.key|security\.key""".r
  private val byName = Set("parquet", "hudi", "orc")
  /** The settings that decide the meaning of a literal's text. */
  private val literalSettings = Seq("ansi.enabled", "ansi.doubleQuotedIdentifiers", "timestampType",
    "parser.escapedStringLiterals").map("spark.sql." + _)
  /** The place of the files, and the instant of a query, which slices show by their names. */
  private val ignoredOptions = Set("path", "as.of.instant")
  /** Hudi sets it for each of its scans. */
  private val ignoredOfHudi = Seq("conf.spark.sql.parquet.enableVectorizedReader")
  /** Delta sets it for each session, and uses its table's own mapping. */
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

  /** The fingerprint of a relation as it would be read under the settings that `session` has now. */
  def of(relation: HadoopFsRelation, table: CatalogTable, session: Compat.Session): Fingerprint = {
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
      // Hudi makes options of all settings of the session that resolves a table.
      .collect { case (k, v) if kind != "hudi" || !Hudi.isHarmless(k) => s"option.$k" -> v }
    val zones =
      // ORC's reader converts instants of a file to whatever type the table has.
      if (kind != "orc" && !zoned(columns, text)) Nil
      else Seq("zone.session" -> conf.sessionLocalTimeZone, "zone.jvm" -> TimeZone.getDefault.getID)
    val parsing =
      if (!text) Nil
      else Seq(
        // Earlier builds read one column of a record, which proves too little of the others' queries.
        "records" -> "whole",
        "ansi" -> conf.ansiEnabled.toString, "corrupt" -> conf.columnNameOfCorruptRecord,
        // Names of months and days, and the rules of zones, come with the Java that parses them.
        "java" -> s"${Runtime.version.feature} ${ZoneRulesProvider.getVersions("Europe/London").lastEntry.getKey}")
    // A column's default is kept as SQL, which each reader parses again.
    val literals =
      if (!columns.existsRecursively(hasDefault)) Nil
      else literalSettings.map(k => s"conf.$k" -> conf.getConfString(k))
    // Earlier builds read some fields of a struct, and lost a default of all of it with the others.
    val structs = if (hasDefaultOfStruct(columns)) Seq("structs" -> "whole") else Nil
    // A build adds columns of such names, so no index of a table that has one is to be believed.
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
   * The columns of the table's files. A query that wants some fields of a struct only has them cut
   * down: where columns are found by name, as in Parquet, and in ORC unless it goes by positions, that
   * changes nothing of how one is read, unless its default was lost with it.
   */
  private def schema(
      relation: HadoopFsRelation, table: CatalogTable, settings: Iterable[String]): StructType = {
    val whole = CharVarcharUtils.replaceCharVarcharWithStringInSchema(table.dataSchema).asNullable
    lazy val named = byName(format(relation)) && !settings.exists(_.contains("positional"))
    // The catalog's own notion of a Delta table's columns may be none, or that of an earlier version.
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
    // A query that wants parts of a VARIANT reads it as a struct of these.
    case (_, w) if w.typeName == "variant" => true
    case (p, w) => p == w
  }

  /** Whether a zone has a part in reading some column; days do without one, unless spelled out. */
  private def zoned(columns: StructType, text: Boolean): Boolean = columns.existsRecursively {
    case DateType => text
    case BooleanType | BinaryType | NullType | _: NumericType | _: StringType => false
    case _: ArrayType | _: MapType => false
    case struct: StructType => hasDefault(struct)
    case _ => true
  }

  /**
   * Whether some column of structs has a default. Spark loses it where a query wants some fields only:
   * in files that lack the column these are NULL then, and in a query of all fields the default's.
   */
  private def hasDefaultOfStruct(columns: StructType): Boolean = columns.fields.exists(f =>
    defaults.exists(f.metadata.contains) && f.dataType.existsRecursively(_.isInstanceOf[StructType]))

  private def hasDefault(t: DataType): Boolean = t match {
    case s: StructType => s.fields.exists(f => defaults.exists(f.metadata.contains))
    case _ => false
  }
}
