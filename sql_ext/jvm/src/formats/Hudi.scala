package org.apache.spark.sql.sieve.formats

import java.lang.reflect.Method
import java.util.{Date, List => JList, Locale, Map => JMap, Properties}
import scala.jdk.CollectionConverters._
import scala.util.Using
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.{InternalRow, TableIdentifier}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.{JoinType, LeftOuter}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{DataSourceUtils, FileIndex, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.sieve.base.{Compat, Json}

/**
 * Support for Hudi tables. For Spark, a Hudi table is a relation of files whose listing belongs to a class of Hudi. The
 * user supplies a Hudi jar of any version, so this object looks up Hudi's classes and methods by name.
 */
object Hudi extends TableFormat {
  import Reflection.getter

  /** Table properties that fingerprints leave out, because readers do not use these properties. */
  private val ignoredProperties = Set("table.checksum", "table.metadata.partitions",
    "table.metadata.partitions.inflight", "table.index.defs.path", "table.secondary.indexes.metadata",
    "archivelog.folder").map("hoodie." + _)
  /** Prefixes of settings that readers ignore, because only writers, table services and listings use them. */
  private val ignoredSettings = Seq("datasource.write.", "datasource.hive_sync.", "datasource.meta.sync.",
    "meta.sync.", "insert.", "upsert.", "delete.", "bulkinsert.", "compact.", "clustering.", "clean.",
    "cleaner.", "keep.", "archive.", "rollback.", "parquet.", "logfile.", "copyonwrite.", "index.", "bloom.",
    "metadata.", "enable.data.skipping", "fileindex.", "spark.sql.", "sql.", "write.concurrency.",
    "write.lock.", "write.markers.", "write.commit.callback.", "embed.", "filesystem.view.", "memory.")
    .map("hoodie." + _)
  /**
   * If the name of a write setting contains one of these words, the setting can also affect how a reader merges log
   * files.
   */
  private val merging = Seq("payload", "precombine", "ordering", "merge")
  private val commits = Set("commit", "deltacommit", "replacecommit")
  private val rollbacks = Set("rollback", "restore")

  /**
   * True if a listing contains the files of a snapshot. Listings of changes between instants have another class.
   */
  override def owns(location: FileIndex): Boolean = location.getClass.getName == "org.apache.hudi.HoodieFileIndex"

  override def locations(relation: HadoopFsRelation): Locations = new HudiSlices(relation)
  override def table(files: ListedFiles): FormatTable = new HudiTable(files)

  /**
   * Returns false, because Hudi can read the values of partition columns from the files. The values in the files can
   * differ from the values in the paths.
   */
  override def hasPartitionsByPath: Boolean = false

  /** True if readers ignore a setting of a session or an option of a table. */
  def isHarmless(setting: String): Boolean = {
    val key = setting.toLowerCase(Locale.ROOT)
    ignoredSettings.exists(key.startsWith) &&
      !(key.startsWith("hoodie.datasource.write.") && merging.exists(key.contains))
  }

  /**
   * Returns the table properties and session settings that can change which rows a reader returns for a slice. The
   * result does not contain the settings of the Parquet reader.
   */
  def fingerprint(relation: HadoopFsRelation, settings: Map[String, String]): Map[String, String] = {
    val properties = getter(getter(client(relation), "getTableConfig"), "getProps").asInstanceOf[Properties]
    val table = properties.asScala.toMap.collect { case (k, v) if !ignoredProperties(k) => s"hudi.$k" -> v }
    val set = settings.collect {
      case (k, v) if k.startsWith("hoodie.") && !isHarmless(k) => s"conf.$k" -> v
    }
    // If a column was dropped and added again, only its id distinguishes the new column from the old one.
    val ids = getter(field(relation.fileFormat, "tableSchema"), "internalSchema")
    table ++ set + ("hudi.columns" -> ids.toString)
  }

  /**
   * The instant of the table state that a reader shows. The reader ignores log entries that are later than this
   * instant.
   */
  def instant(relation: HadoopFsRelation): String = field(relation.fileFormat, "queryTimestamp").toString

  /** The completion time, in ms since the epoch, of the newest commit that the relation shows. */
  def completed(relation: HadoopFsRelation): Option[Long] = {
    val until = instant(relation)
    val done = getter(getter(client(relation), "getCommitsTimeline"), "filterCompletedInstants")
    instants(done).filter(requested(_) <= until).flatMap(completion(relation, _)).reduceOption(_ max _)
  }

  /**
   * The completion time of an instant on the timeline, in ms since the epoch. Returns None if the timeline does not
   * contain this time.
   */
  private def completion(relation: HadoopFsRelation, instant: AnyRef): Option[Long] =
    Option(getter(instant, "getCompletionTime")).map { digits =>
      load(relation.location, "common.table.timeline.HoodieInstantTimeGenerator")
        .getMethod("parseDateFromInstantTime", classOf[String]).invoke(null, digits.toString)
        .asInstanceOf[Date].getTime
    }

  /**
   * The actions of Hudi's active timeline as JSON, from the oldest to the newest. An entry contains an action's name,
   * whether the action is complete, and its completion time.
   */
  def timeline(relation: HadoopFsRelation): String = Json.write(instants(activeTimeline(relation)).map { one =>
    Seq(action(one), getter(one, "isCompleted"), completion(relation, one))
  })

  /**
   * Returns the partitions in which an action wrote or replaced files, as JSON. `number` is the position of the action
   * in `timeline`.
   */
  def partitions(relation: HadoopFsRelation, number: Int): String = {
    val instant = instants(activeTimeline(relation))(number)
    val metadata = load(relation.location, "common.table.timeline.TimelineUtils").getMethods
      .find(_.getName == "getCommitMetadata").get.invoke(null, instant, activeTimeline(relation))
    def keys(member: String) = getter(metadata, member).asInstanceOf[JMap[String, _]].keySet.asScala.toSeq
    val replaced = if (action(instant) == "replacecommit") keys("getPartitionToReplaceFileIds") else Nil
    Json.write(keys("getPartitionToWriteStats") ++ replaced)
  }

  /**
   * True if a commit may have been rolled back after `instant`. Some releases of Hudi write a rollback block into a log
   * file, and readers of every instant apply this block. If the timeline does not reach back to `instant`, the result
   * is true, because rollbacks may be missing. A commit with a savepoint does not show how far the timeline reaches
   * back, because Hudi can keep this commit and archive later commits.
   */
  def isRolledBack(relation: HadoopFsRelation, instant: String): Boolean = {
    val all = instants(activeTimeline(relation))
    val saved = all.filter(action(_) == "savepoint").map(requested).toSet
    val reaches = all.filter(one => commits(action(one))).map(requested)
      .exists(one => one <= instant && !saved(one))
    !reaches || all.exists(one => rollbacks(action(one)) &&
      Option(getter(one, "getCompletionTime")).forall(_.toString > instant))
  }

  /** True if a query reads an earlier instant. */
  override def isAsOf(relation: HadoopFsRelation): Boolean =
    relation.options.contains("as.of.instant")

  /**
   * For a query of an earlier instant, the completion time of the newest commit that the query shows. Returns None for
   * a query of the current state.
   */
  override def asOf(relation: HadoopFsRelation): Option[Long] = if (isAsOf(relation)) completed(relation) else None

  /**
   * The same result as `listFiles`, but only for some partitions. Returns None if this release of Hudi cannot list
   * single partitions.
   */
  def list(location: FileIndex, partitions: Seq[String]): Option[Seq[PartitionDirectory]] = for {
    path <- method(location, "convertToPartitionPath")
    slices <- method(location, "getInputFileSlices")
    prepare <- method(location, "prepareFileSlices")
  } yield {
    val kind = slices.getParameterTypes.head.getComponentType
    val wanted = java.lang.reflect.Array.newInstance(kind, partitions.size).asInstanceOf[Array[AnyRef]]
    partitions.map(path.invoke(location, _)).copyToArray(wanted)
    val found = slices.invoke(location, wanted).asInstanceOf[JMap[AnyRef, JList[AnyRef]]].asScala.toSeq
    directories(location, prepare, found.map { case (partition, inside) => (partition, inside.asScala.toSeq) })
  }

  /**
   * The result of `listFiles` for these filters, but without Hudi's own data skipping. A rule of Hudi's optimizer makes
   * the same listing, and Hudi caches this listing. Returns None if this release of Hudi lacks a method that this code
   * calls.
   */
  override def listed(location: FileIndex, filters: Seq[Expression]): Option[Seq[PartitionDirectory]] = for {
    slices <- method(location, "filterFileSlices", _.getParameterTypes.lastOption.contains(classOf[Boolean]))
    prepare <- method(location, "prepareFileSlices")
  } yield {
    val (ofPartitions, others) =
      DataSourceUtils.getPartitionFiltersAndDataFilters(location.partitionSchema, filters)
    val found = slices.invoke(location, others, ofPartitions, Boolean.box(true))
      .asInstanceOf[scala.collection.Seq[(Option[AnyRef], scala.collection.Seq[AnyRef])]].toSeq
    directories(location, prepare, found.map { case (partition, inside) => (partition.get, inside.toSeq) })
  }

  private def directories(
      location: FileIndex, prepare: Method, found: Seq[(AnyRef, Seq[AnyRef])]): Seq[PartitionDirectory] = {
    val rows = for {
      (partition, inside) <- found
      // This code reads a private field, because releases before Hudi 1.2 have no method that returns these values.
      values = field(partition, "values").asInstanceOf[Array[Any]].toSeq
      slice <- inside if getter(slice, "isEmpty") == false
    } yield (InternalRow.fromSeq(values), slice)
    prepare.invoke(location, rows).asInstanceOf[scala.collection.Seq[PartitionDirectory]].toSeq
  }

  /** Opens a reader of the blocks in a log file. The reader does not need the schema of the records. */
  def logReader(relation: HadoopFsRelation, log: AnyRef): AnyRef =
    load(log, "common.table.log.HoodieLogFileReader").getConstructors.find(_.getParameterCount == 4).get
      .newInstance(getter(client(relation), "getStorage"), log, null, Int.box(1 << 16)).asInstanceOf[AnyRef]

  /** Hudi's meta client, which gives access to the table's folder, properties and timeline. */
  def client(relation: HadoopFsRelation): AnyRef = getter(relation.location, "metaClient")

  /**
   * The type of the join that MERGE uses to find the rows of the table. Returns None if MERGE finds these rows by
   * record key in Hudi's own index.
   */
  override def mergeJoin(relation: HadoopFsRelation, joinType: JoinType): Option[JoinType] =
    if (option(getter(getter(client(relation), "getTableConfig"), "getRecordKeyFields")).nonEmpty) None else Some(LeftOuter)

  private def activeTimeline(relation: HadoopFsRelation) = getter(client(relation), "getActiveTimeline")
  private def instants(timeline: AnyRef): Seq[AnyRef] =
    getter(timeline, "getInstants").asInstanceOf[JList[AnyRef]].asScala.toSeq
  private def action(instant: AnyRef): String = getter(instant, "getAction").toString
  private def requested(instant: AnyRef): String = getter(instant, "requestedTime").toString

  // -- reflection ---------------------------------------------------------------------------------

  /** True if a value's class is a class of Hudi. */
  def isOwn(value: AnyRef): Boolean = value.getClass.getName.startsWith("org.apache.hudi.")

  override def runs(command: LogicalPlan): Boolean = command.getClass.getName.startsWith("org.apache.spark.sql.hudi.")
  override def replacingCommands: Set[String] = Set("InsertIntoHoodieTable", "UpdateHoodieTable", "DeleteHoodieTable",
    "MergeIntoHoodieTable", "CreateHoodieTableAsSelect", "TruncateHoodieTable", "AlterHoodieTableDropPartition",
    "CompactionHoodieTable").map(name => s"org.apache.spark.sql.hudi.command.${name}Command")
  override def writingCommands: Set[String] = replacingCommands
  override def writesByPath(source: AnyRef): Boolean = isOwn(source)
  override def tableIn(argument: AnyRef): Option[AnyRef] =
    if (argument.getClass.getSimpleName == "HoodieCatalogTable") Some(getter(argument, "table")) else None

  /**
   * The catalog's table whose data is in the folder `path`. Hudi stores the name of the table, and possibly the name of
   * its database, in a properties file in this folder.
   */
  override def tableAt(path: Path, session: Compat.Session): Option[TableIdentifier] = {
    val files = path.getFileSystem(session.sessionState.newHadoopConf())
    val properties = new Properties
    Using.resource(files.open(new Path(path, ".hoodie/hoodie.properties")))(properties.load(_))
    def property(key: String) = Option(properties.getProperty(key)).filter(_.nonEmpty)
    val catalog = session.sessionState.catalog
    for {
      name <- property("hoodie.table.name").map(_.toLowerCase(Locale.ROOT))
      database = property("hoodie.database.name").getOrElse(catalog.getCurrentDatabase)
      identifier = TableIdentifier(name, Some(database))
      if catalog.databaseExists(database) && catalog.tableExists(identifier)
      location <- catalog.getTableMetadata(identifier).storage.locationUri
      if files.makeQualified(new Path(location)) == files.makeQualified(path)
    } yield identifier
  }

  /** The value inside an instance of Hudi's own class `Option`. Returns None if the instance is empty. */
  def option(of: AnyRef): Option[AnyRef] = if (getter(of, "isPresent") == true) Some(getter(of, "get")) else None

  /** Loads a class of Hudi with the class loader of the object `like`. */
  def load(like: AnyRef, name: String): Class[_] =
    like.getClass.getClassLoader.loadClass(s"org.apache.hudi.$name")

  private def field(of: AnyRef, name: String): AnyRef = {
    val found = of.getClass.getDeclaredField(name)
    found.setAccessible(true)
    found.get(of)
  }

  private def method(
      of: AnyRef, name: String, isWanted: Method => Boolean = _.getParameterCount == 1): Option[Method] =
    Iterator.iterate[Class[_]](of.getClass)(_.getSuperclass).takeWhile(_ != null)
      .flatMap(_.getDeclaredMethods).find(m => m.getName == name && isWanted(m))
      .map { m => m.setAccessible(true); m }
}
