package org.apache.spark.sql.sieve.predicate

import java.time.zone.ZoneRulesProvider
import java.util.{Locale, TimeZone}
import scala.util.Try
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.sieve.base.{Compat, Json, LruMap, Variants}
import org.apache.spark.sql.sieve.formats.ReaderSettings
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Describes everything on which the value of an expression in a session depends. */
private object ExpressionMeaning {
  /**
   * Settings of Spark SQL that do not change the value of a resolved expression. These settings change only how Spark
   * resolves, runs or shows a query. ANSI mode and the time zone are arguments of the expressions that need them, so
   * this list contains both settings. Any setting outside this list is part of an expression's meaning. Clients set
   * some of these settings to different values: spark-sql and the Thrift server set `artifact.` and `java8API`.
   */
  private val harmless = Seq(
    "adaptive.", "addPartitionInBatch.", "analyzer.", "ansi.enabled", "artifact.", "autoBroadcastJoinThreshold",
    "binaryOutputStyle", "broadcast", "bucketing.", "cache.", "cartesianProductExec.", "catalog", "cbo.", "classic.",
    "cli.", "codegen.", "columnVector.", "connect.", "constraintPropagation.", "crossJoin.", "cteRec", "cteRel",
    "dataframe", "dataFrame", "dataSource.", "datetime.java8API.", "debug.", "default", "error.", "event.",
    "exchange.", "execution.", "expressionTree", "extendedExplain", "extensions", "files.", "filesource",
    "globalTempDatabase", "groupBy", "hive.", "inMemoryColumnarStorage.", "join.", "lateralColumnAlias.", "lazySet",
    "leafNodeDefaultParallelism", "legacy.orc.", "legacy.parquet.", "lightweightPlan", "limit.", "maven.", "max",
    "metadataCacheTTLSeconds", "metrics.", "nameResolutionLog.", "objectHashAggregate.", "operatorPipe",
    "optimizeNullAware", "optimizer.", "orc.", "orderBy", "orderingAware", "parquet.", "pipelines.", "pivotMax",
    "plan", "prioritizeOrdinal", "pyspark.", "python", "queryExecutionListeners", "readSideCharPadding", "redaction.",
    "repl.", "requireAllClusterKeys", "resultQueryStage.", "retainGroup", "runSQLOnFiles", "script", "selfJoinAuto",
    "session.localRelation", "session.timeZone", "sessionWindow", "shuffle", "sort.", "sortMergeJoinExec.",
    "sources.", "stableDerived", "stackTraces", "statistics.", "storeAssignmentPolicy", "streaming.",
    "subexpressionElimination.", "subquery", "thriftServer.", "thriftserver.", "timeTravel", "transposeMax",
    "truncateTable.", "tvf.", "ui.", "unionOutput", "variable.", "variant.pushVariantIntoScan", "view.", "warehouse.",
    "window").map("spark.sql." + _)
  /** Exceptions to `harmless`: settings whose values are types or collations that an expression can use. */
  private val harmful = Seq("spark.sql.defaultStringType", "spark.sql.session.collation")
  /** Caches the names of the functions that an expression calls, by the SQL of the expression. */
  private val calls = new LruMap[String, Seq[String]](512)

  /**
   * Returns a text that describes everything on which the value of an expression in a session depends. Two sessions
   * have different texts if they compute different values for the expression.
   */
  def of(
      made: Expression, path: Expression => Option[Seq[String]], stored: IndexedExpression.Stored,
      session: Compat.Session): String = {
    val conf = session.sessionState.conf
    def columns(e: Expression): Seq[Seq[String]] = path(e).map(stored).fold(e.children.flatMap(columns))(Seq(_))
    val inFiles = IndexedExpression.normal(made, path).transform { case c: ColumnValue => c.copy(path = stored(c.path)) }
    Json.write(Map(
      "columns" -> columns(Variants.withoutPushed(made)).distinct,
      "value" -> text(inFiles),
      "spark" -> session.version.split('.').take(2).mkString("."),
      // Conversions to upper or lower case, and the rules of time zones, depend on the version of Java.
      "java" -> s"${Runtime.version.feature} ${ZoneRulesProvider.getVersions("Europe/London").lastEntry.getKey}",
      "locale" -> Locale.getDefault.toString, "zone" -> TimeZone.getDefault.getID,
      "conf" -> (conf.getAllConfs.filter { case (k, v) => isOfValues(k) && !ReaderSettings.isDefault(k, v) } ++
        ReaderSettings.executors(session.sparkContext.conf.getOption))))
  }

  private def isOfValues(key: String): Boolean =
    key.startsWith("spark.sql.") && (harmful.contains(key) || !harmless.exists(p => key.startsWith(p)))

  /**
   * Returns the class name of each function that an expression calls, as the session implements the function. The
   * result contains None for a function that is neither built in nor temporary.
   */
  def functions(sql: String, session: Compat.Session): Seq[Option[String]] = {
    val names = calls.synchronized(Option(calls.get(sql))).getOrElse {
      val found = Try(IndexedExpression.parsed(sql, session).collect { case call: UnresolvedFunction => call.nameParts.last }).getOrElse(Nil)
      calls.synchronized(calls.put(sql, found))
      found
    }
    names.map(name => session.sessionState.catalog.lookupBuiltinOrTempFunction(name).map(_.getClassName))
  }

  /**
   * True if the result of a cast can depend on the time zone. Spark's `Cast.needsTimeZone` returns false for a cast of
   * an array, a map or a struct to a string, even if it contains times.
   */
  private def needsTimeZone(cast: Cast): Boolean = {
    val from = cast.child.dataType
    Cast.needsTimeZone(from, cast.dataType) ||
      from.existsRecursively(of => of.typeName.startsWith("timestamp") || of.typeName == "variant")
  }

  /** An expression as text, with all its arguments, types and evaluation modes. */
  def text(of: Any): String = of match {
    case c: Cast if c.timeZoneId.nonEmpty && !needsTimeZone(c) => text(c.copy(timeZoneId = None))
    case GetStructField(struct, at, Some(_)) => text(GetStructField(struct, at))
    case NamedLambdaVariable(name, kind, _, _, _) => s"variable($name: ${kind.catalogString})"
    case ColumnValue(path, kind) => s"column(${text(path)}: ${kind.catalogString})"
    // The text's length shows where the text ends.
    case plain: String => s"${plain.length}:$plain"
    case plain: UTF8String => plain.getBytes.map("%02x".format(_)).mkString
    case literal: Literal => s"literal(${text(literal.value)}: ${literal.dataType.catalogString})"
    case kind: DataType => kind.catalogString
    case option: Option[_] => option.fold("none")(one => s"some(${text(one)})")
    case many: Iterable[_] => many.map(text).mkString("[", ", ", "]")
    case array: Array[_] => text(array.toSeq)
    case of: Class[_] => of.getName
    case node: Product => s"${node.getClass.getName}(${node.productIterator.map(text).mkString(", ")})"
    case other => String.valueOf(other)
  }
}
