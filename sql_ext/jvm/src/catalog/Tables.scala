package org.apache.spark.sql.sieve

import java.time.Instant

import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.sql.{AnalysisException, DataFrame}
import org.apache.spark.sql.catalyst.{InternalRow, TableIdentifier}
import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedRelation}
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType, HiveTableRelation}
import org.apache.spark.sql.catalyst.expressions.{Alias, BitwiseNot, If}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, SubqueryAlias, View}
import org.apache.spark.sql.execution.CommandExecutionMode
import org.apache.spark.sql.execution.command.{AlterTableSetPropertiesCommand, AlterTableUnsetPropertiesCommand}
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.ThreadUtils

/** Tables as statements need them: resolved by Spark in the user's session, with its checks. */
object Tables {
  def resolve(session: Compat.Session, parts: java.util.List[String]): TableAccess = {
    val name = parts.asScala.toList
    // The session may hold an older listing of this table; a build must see the files of now.
    forget(session, name)
    val relation = UnresolvedRelation(name)
    val analyzed =
      try session.sessionState.executePlan(relation).analyzed
      catch {
        case e: AnalysisException if e.errorClass.contains("TABLE_OR_VIEW_NOT_FOUND") =>
          throw unknown(session, name)
      }
    new TableAccess(session, name, bare(analyzed))
  }

  /** Plans a query of a column: what keeps the user from it, such as an authorizer, raises here. */
  def plan(session: Compat.Session, name: Seq[String], column: Seq[String]): Unit =
    session.sessionState.executePlan(
      Project(Seq(UnresolvedAttribute(column)), UnresolvedRelation(name)),
      CommandExecutionMode.SKIP).executedPlan

  private def unknown(session: Compat.Session, name: List[String]): SieveException = {
    val catalog = session.sessionState.catalog
    val database = if (name.size > 1) name(name.size - 2) else catalog.getCurrentDatabase
    val typed = UTF8String.fromString(name.last)
    val near =
      if (!catalog.databaseExists(database)) Nil
      else catalog.listTables(database).map(_.table).distinct
        .map(t => typed.levenshteinDistance(UTF8String.fromString(t)) -> t)
        .filter { case (distance, t) => 3 * distance <= t.length.max(3) }.sorted.take(3).map(_._2)
    val hint = if (near.isEmpty) "check its name and database" else s"did you mean ${near.mkString(", ")}?"
    new SieveException("SIEVE_UNKNOWN_TABLE", s"there is no table $database.${name.last}; $hint",
      state = "42P01")
  }

  private def forget(session: Compat.Session, name: List[String]): Unit = {
    val identifier = name match {
      case List(t) => Some(TableIdentifier(t))
      case List(d, t) => Some(TableIdentifier(t, Some(d)))
      case List("spark_catalog", d, t) => Some(TableIdentifier(t, Some(d)))
      case _ => None
    }
    val catalog = session.sessionState.catalog
    identifier.filter(i => !catalog.isTempView(i) && catalog.tableExists(i))
      .foreach(i => catalog.invalidateCachedTable(i))
  }

  private def bare(plan: LogicalPlan): LogicalPlan = plan match {
    case SubqueryAlias(_, child) => bare(child)
    // Where a column is CHAR(n), Spark pads it above the table.
    case Project(_, table: LogicalRelation) => table
    case other => other
  }

  def identity(table: CatalogTable): ObjectNode = Link.json.createObjectNode
    .put("catalog", table.identifier.catalog.getOrElse("spark_catalog"))
    .put("database", table.identifier.database.getOrElse("default"))
    .put("table", table.identifier.table)
    .put("create_time_ms", table.createTime)
    .put("location", table.storage.locationUri.map(u => new Path(u).toString).getOrElse(""))

  def databaseLocation(session: Compat.Session, database: String): String = {
    val path = new Path(session.sessionState.catalog.getDatabaseMetadata(database).locationUri)
    path.getFileSystem(session.sessionState.newHadoopConf()).makeQualified(path).toString
  }

  /** All tables of a database with the registrations that they carry, as JSON. */
  def tables(session: Compat.Session, database: String): String = {
    val catalog = session.sessionState.catalog
    val names = catalog.listTables(database, "*", includeLocalTempViews = false)
    val array = Link.json.createArrayNode
    catalog.getTablesByName(names).foreach { table =>
      val node = identity(table)
      val properties = node.putObject("registrations")
      Registry.registrations(table).foreach { case (k, v) => properties.put(k, v) }
      array.add(node)
    }
    Link.json.writeValueAsString(array)
  }
}

/** One table: what it is, its files, a frame that reads some of them as a query would. */
class TableAccess(session: Compat.Session, name: List[String], plan: LogicalPlan) extends Logging {
  private lazy val (files, table) = plan match {
    case l: LogicalRelation => (l.relation.asInstanceOf[HadoopFsRelation], l.catalogTable.get)
  }
  private lazy val locations = Locations.of(files)
  private var listed = IndexedSeq.empty[(InternalRow, FileStatusWithMetadata)]
  private var news = Map.empty[Int, (InternalRow, FileStatusWithMetadata)]

  /** "files" for a table that can be indexed; else what it is, for the error to say. */
  def kind: String = plan match {
    // However deep below a view: there is no table to index instead.
    case _ if plan.isStreaming => "stream"
    case l: LogicalRelation => l.relation match {
      case fs: HadoopFsRelation if !SieveStrategy.known(fs.location) =>
        s"location ${fs.location.getClass.getName}"
      case _: HadoopFsRelation if l.catalogTable.isEmpty => "path"
      case fs: HadoopFsRelation if Hudi.is(fs.location) =>
        Hudi.refusal(fs).fold("files")(why => s"hudi $why")
      case _: HadoopFsRelation => "files"
      case other => s"source ${other.getClass.getName}"
    }
    case h: HiveTableRelation => s"hive ${h.tableMeta.storage.serde.getOrElse("")}"
    case v: DataSourceV2Relation => s"v2 ${v.table.getClass.getName}"
    case v: View => if (v.isTempView) "temporary view" else "view"
    case other => s"source ${other.getClass.getName}"
  }

  def info: String = {
    val node = Tables.identity(table)
    node.put("format", Fingerprint.format(files)).put("type", table.tableType.name)
    node.put("managed", table.tableType == CatalogTableType.MANAGED)
    node.put("hive", session.sparkContext.conf.get("spark.sql.catalogImplementation", "in-memory") == "hive")
    node.put("case_sensitive", session.sessionState.conf.caseSensitiveAnalysis)
    node.put("spark", session.version)
    node.put("corrupt_column", WholeRecords.corruptColumn(files.options, session.sessionState.conf))
    node.put("database_location",
      Tables.databaseLocation(session, table.identifier.database.getOrElse("default")))
    val leaves = node.putArray("columns")
    leafColumns(files.dataSchema, Nil).foreach { case (path, t) =>
      val leaf = leaves.addObject().put("type", t.catalogString)
      path.foreach(leaf.withArray("path").add(_))
    }
    files.partitionSchema.fieldNames.foreach(node.withArray("partition_columns").add(_))
    Registry.registrations(table).foreach { case (k, v) =>
      node.withObject("/registrations").put(k, v)
    }
    Declared.by(table).foreach { case (k, v) => node.withObject("/declared").put(k, v) }
    val mark = Fingerprint.of(files, table, session)
    node.put("fingerprint", mark.hash)
    mark.parts.foreach { case (k, v) => node.withObject("/fingerprint_parts").put(k, v) }
    Link.json.writeValueAsString(node)
  }

  /** What `info` tells as such, as it is now. */
  def fingerprint: String = Fingerprint.of(files, table, session).hash

  private def leafColumns(schema: StructType, above: List[String]): Seq[(List[String], DataType)] =
    schema.fields.toSeq.flatMap { f =>
      val path = above :+ f.name
      val declared = org.apache.spark.sql.catalyst.util.CharVarcharUtils.getRawType(f.metadata)
        .getOrElse(f.dataType)
      declared match {
        case s: StructType => (path -> s) +: leafColumns(s, path)
        case other => Seq(path -> other)
      }
    }

  /** Every location of the table now: [path, length, time]; what cannot be told apart is left out. */
  def list: String = {
    // Hudi would go on to later commits than its reader, which passes over what these have logged.
    if (!Hudi.is(files.location)) files.location.refresh()
    val array = Link.json.createArrayNode
    list(files.location.listFiles(Nil, Nil), array)
    Link.json.writeValueAsString(array)
  }

  private def list(directories: Seq[PartitionDirectory], into: ArrayNode): Unit = {
    news = Map.empty
    listed = (for {
      directory <- directories
      file <- directory.files
      at <- locations.of(directory.values, file)
      now <- at.shown if at.written.isEmpty
    } yield {
      into.addArray().add(at.path.toString).add(now.length).add(now.modified)
      (directory.values, file)
    }).toIndexedSeq
  }

  /**
   * The locations in folders that may have been written to since an instant, in ISO 8601: `folders`,
   * and `files` as `list` has them. Null where only a listing of all can tell.
   */
  def listSince(instant: String): String = {
    val conf = session.sessionState.newHadoopConf()
    def isThere(folder: Path) = folder.getFileSystem(conf).exists(folder)
    // What fails here is no harm: a listing of all will do, or say why it will not.
    def told = for {
      partitions <- HudiChanges.since(files, Instant.parse(instant).toEpochMilli)
      folders = partitions.map(one => one -> HudiChanges.folder(files, one)).toMap
      directories <- HudiChanges.list(files.location, partitions.filter(one => isThere(folders(one))))
    } yield {
      val node = Link.json.createObjectNode
      val array = node.putArray("folders")
      folders.values.foreach(folder => array.add(folder.toString))
      list(directories, node.putArray("files"))
      Link.json.writeValueAsString(node)
    }
    Try(told).recover { case NonFatal(e) =>
      logWarning(s"sieve: what has changed in ${name.mkString(".")} is not told: $e; all is listed")
      None
    }.get.orNull
  }

  /**
   * Of files of the last listing, as [number, length then, time then, all rows known] in JSON, the
   * numbers of those whose rows since then can be read alone.
   */
  def grown(known: String): String = {
    val asked = Link.json.readTree(known).elements.asScala.toSeq
    // A look into a log file is mostly waiting for the store.
    news = ThreadUtils.parmap(asked, "sieve-grown", 16) { one =>
      newsOf(one.get(0).asInt, one.get(1).asLong, one.get(2).asLong, one.get(3).asBoolean)
        .map(one.get(0).asInt -> _)
    }.flatten.toMap
    val array = Link.json.createArrayNode
    news.keys.foreach(array.add(_))
    Link.json.writeValueAsString(array)
  }

  private def newsOf(number: Int, length: Long, modified: Long, allRows: Boolean) = {
    val (values, file) = listed(number)
    try locations.grown(values, file, length, modified, allRows)
    catch {
      case e @ (_: Exception | _: LinkageError) =>
        // No harm: it is read whole, which will do or say why it will not.
        logWarning(s"sieve: what is new in ${file.getPath} is not told: $e; all of it is read")
        None
    }
  }

  /** When the table became what was listed, ms since the epoch; below zero where it does not tell. */
  def instant: Long = if (Hudi.is(files.location)) Hudi.completed(files).getOrElse(-1) else -1

  /**
   * Reads the files with these numbers in the last listing as a query would, errors not passed over.
   * One column more tells a row's file by its place among the numbers: a partition column, since
   * its value costs nothing to read and nothing to tell apart. In text formats it is -1 less the place
   * in the row that stands for a damaged record, and who reads it reads records whole. If `fixed`, Python is to get nothing
   * but values of a fixed width of them. Of the files in `grown`, which the method of that name has
   * told, what is new is read and nothing else.
   */
  def frame(
      numbers: java.util.List[Int], grown: java.util.List[Int], location: String,
      fixed: Boolean): DataFrame = {
    val own = files.partitionSchema
    val schema = own.add(location, IntegerType, nullable = false)
    val alone = grown.asScala.toSet
    val (added, whole) = numbers.asScala.toSeq.zipWithIndex.partition { case (n, _) => alone(n) }

    def over(some: Seq[(Int, Int)], from: Int => (InternalRow, FileStatusWithMetadata),
        more: Map[String, String]) = {
      val wanted = some.map { case (n, place) =>
        val (values, file) = from(n)
        locations.alone(values, file, own, place)
      }
      val relation = WholeRecords.of(PinnedFileIndex.over(files, wanted, schema, more))
      val rows = LogicalRelation(relation, isStreaming = false)
      Compat.frame(if (fixed) unmeasured else session, marked(rows, location))
    }

    val read = over(whole, listed, Map.empty)
    if (added.isEmpty) read
    else {
      val grew = over(added, news, HudiLogs.unmerged)
      if (whole.isEmpty) grew else read.union(grew)
    }
  }

  /** Rows of a text format in which `-1 - place` stands for the place of a damaged record's file. */
  private def marked(rows: LogicalRelation, location: String): LogicalPlan =
    rows.output.find(_.name == WholeRecords.damaged).fold[LogicalPlan](rows) { damaged =>
      val (places, columns) = rows.output.filterNot(_ eq damaged).partition(_.name == location)
      val place = Alias(If(damaged, BitwiseNot(places.head), places.head), location)()
      Project(columns :+ place, rows)
    }

  /**
   * The session, but for the bytes of a batch of rows that Python gets: from 4.1 on Spark measures a
   * batch after each row that it adds, which takes longer than all else of reading a number. For
   * values of a fixed width its limit of rows is limit enough.
   */
  private lazy val unmeasured: Compat.Session = {
    val limit = "spark.sql.execution.arrow.maxBytesPerBatch"
    if (session.conf.getOption(limit).isEmpty) session
    else {
      val own = session.cloneSession()
      own.conf.set(limit, Int.MaxValue.toString)
      own
    }
  }

  /** Writes a property of the table, unless another one has come to bear its name. */
  def setProperty(key: String, value: String): Unit = {
    val now = session.sessionState.catalog.getTableMetadata(table.identifier)
    if (Tables.identity(now) != Tables.identity(table)) throw new SieveException(
      "SIEVE_TABLE_MOVED",
      s"table ${name.mkString(".")} was made anew or moved meanwhile, so its index was not registered; " +
        "run the statement again", state = "40001")
    AlterTableSetPropertiesCommand(table.identifier, Map(key -> value), isView = false).run(session)
    publish()
  }

  def unsetProperty(key: String): Unit = {
    AlterTableUnsetPropertiesCommand(table.identifier, Seq(key), ifExists = true, isView = false)
      .run(session)
    publish()
  }

  /** The table's registrations, as the metastore has them now; makes them known to every session. */
  def publish(): String = Registry.synchronizedWithMetastore {
    val now = session.sessionState.catalog.getTableMetadata(table.identifier)
    val entry = Registry.put(Registry.key(session, now), Registry.registrations(now))
    val node = Link.json.createObjectNode
    entry.registrations.foreach { case (k, v) => node.put(k, v) }
    Link.json.writeValueAsString(node)
  }
}
