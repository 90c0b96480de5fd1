package org.apache.spark.sql.sieve.predicate

import java.util.UUID
import scala.util.Try
import scala.util.control.NonFatal
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.util.{quoteIfNeeded, CharVarcharUtils}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Project, Statistics}
import org.apache.spark.sql.sieve.base.{Compat, LruMap, Variants}
import org.apache.spark.sql.types._

/**
 * An indexed expression, whose value depends only on the columns of one row.
 *
 * @param key     the path by which indexes and predicates name the expression; see `IndexedExpression.key`
 * @param sql     the expression in SQL, with the column names of the table
 * @param value   the expression in normal form; see `IndexedExpression.normal`
 * @param columns the columns of a tuple; empty for any other expression
 * @param reading a text that describes how a session computes the value, with settings and versions; see
 *                `ExpressionMeaning`
 */
final case class IndexedExpression(
    key: Seq[String], sql: String, value: Expression, columns: Seq[ColumnValue], reading: String) {
  private lazy val text = ExpressionMeaning.text(value)

  /**
   * The kind of an index that can have any number of keys for a row. Returns None if a row's only key is the value of
   * the expression.
   */
  def kind: Option[String] = ManyKeys.kind(key)
  def keyType: DataType = ManyKeys.keyType(kind, value.dataType)

  /** True if another expression in normal form has the same value in each row, and fails for the same rows. */
  def isSame(other: Expression): Boolean =
    value.canonicalized == other.canonicalized && text == ExpressionMeaning.text(other)
}

/** The indexed expressions over the columns of a scan. */
class IndexedExpressions(all: Seq[IndexedExpression]) {
  /** The key and the type of an indexed expression. Returns None if no index contains the expression's value. */
  def key(e: Expression, path: Expression => Option[Seq[String]]): Option[(Seq[String], DataType)] =
    if (all.isEmpty || e.isInstanceOf[Literal] || e.isInstanceOf[Attribute]) None
    else find(None, e, path).map(found => (found.key, found.keyType))

  /** The key of an expression for an index of this kind. Returns None if the expression has no such index. */
  def key(kind: String, e: Expression, path: Expression => Option[Seq[String]]): Option[Seq[String]] =
    if (all.isEmpty || e.isInstanceOf[Literal]) None else find(Some(kind), e, path).map(_.key)

  private def find(kind: Option[String], e: Expression, path: Expression => Option[Seq[String]]): Option[IndexedExpression] = {
    val own = all.filter(_.kind == kind)
    if (own.isEmpty) None
    else {
      val value = IndexedExpression.normal(e, path)
      own.find(_.isSame(value))
    }
  }

  /** True if this object also gives keys to expressions without an index. Advice on new indexes needs these keys. */
  def areProposed: Boolean = false

  /** True if the root of some indexed expression has the same class as this AND, OR or NOT. */
  def haveRoot(e: Expression): Boolean = all.exists(_.value.getClass == e.getClass)

  /** The SQL of the indexed expressions that contain at least one of these columns. */
  def over(names: Seq[String]): Seq[String] = all.filter(_.value.exists {
    case ColumnValue(path, _) => names.contains(path.head)
    case _ => false
  }).map(_.key(1))

  /** The tuples of columns that have an index. */
  val tuples: Seq[Tuple] = all.filter(_.columns.nonEmpty).map(one => Tuple(one.key, one.columns))

  /** The tuple that consists of these columns, in any order. Returns None if this tuple has no index. */
  def tuple(columns: Seq[ColumnValue]): Option[Tuple] =
    tuples.find(_.columns.map(_.path).toSet == columns.map(_.path).toSet)

  /**
   * The parts that these expressions add to a reader's fingerprint, because the expressions' values depend on these
   * parts.
   */
  def parts: Map[String, String] = all.map(one => s"expression.${one.key(1)}" -> one.reading).toMap
}

object IndexedExpressions {
  val none = new IndexedExpressions(Nil)

  /**
   * Returns the indexed expressions for a scan with these columns. Leaves out an expression if the session does not
   * know one of the expression's columns or functions.
   *
   * @param columns the scan's columns that the files contain
   */
  def of(
      keys: Iterable[Seq[String]], columns: Seq[Attribute], stored: IndexedExpression.Stored, session: Compat.Session): IndexedExpressions = {
    val expressions = keys.filter(IndexedExpression.isKey)
    if (expressions.isEmpty) none
    else new IndexedExpressions(expressions.toSeq.flatMap(IndexedExpression.of(_, columns, stored, session)))
  }
}

object IndexedExpression {
  /** Translates a column's path in the table to the column's path in the files. */
  type Stored = Seq[String] => Seq[String]

  private val known = new LruMap[Any, Option[IndexedExpression]](512)

  /**
   * The path that identifies an expression: an empty name, which no column has, and the expression's SQL with the
   * column names in the files. For an index of a kind in `ManyKeys`, the path also contains the kind.
   */
  def key(sql: String, kind: Option[String] = None): Seq[String] = Seq("", sql) ++ kind
  def isKey(path: Seq[String]): Boolean =
    path.headOption.contains("") && (path.size == 2 || ManyKeys.kind(path).exists(ManyKeys.kinds))

  /**
   * The indexed expression that has a key. Returns None if this session cannot resolve the expression or compute its
   * indexed value.
   */
  def of(
      key: Seq[String], columns: Seq[Attribute], stored: Stored, session: Compat.Session): Option[IndexedExpression] = {
    val in = (key, columns.map(a => (a.name, a.dataType, a.metadata, stored(Seq(a.name)))), session.sessionState.conf.getAllConfs,
      ExpressionMeaning.functions(key(1), session))
    Option(known.synchronized(known.get(in))).getOrElse {
      val made = now(key, columns, stored, session)
      known.synchronized(known.put(in, made))
      made
    }
  }

  /** Does the same as `of` without the cache. Some constants, such as 'today', change their meaning each day. */
  def now(
      key: Seq[String], columns: Seq[Attribute], stored: Stored, session: Compat.Session): Option[IndexedExpression] =
    Try(resolved(key(1), ManyKeys.kind(key), columns, stored, session)).toOption.flatMap(_.toOption).filter(_.key == key)

  /**
   * The expression that a user has typed, or the reason why this expression cannot have an index.
   *
   * @param kind the kind of index that the user has typed; None if the user has typed no kind
   */
  def typed(
      sql: String, kind: Option[String], columns: Seq[Attribute], stored: Stored,
      session: Compat.Session): Either[String, IndexedExpression] =
    try {
      val names = new ColumnNames(columns, stored)
      val renamed = written(sql, session)(names.inFiles(_, session.sessionState.conf.resolver))
      val first = resolved(renamed, kind, columns, stored, session)
      // A literal can be a Java object whose text differs each time. An expression with this literal cannot be compared
      // with other expressions.
      val second = resolved(renamed, kind, columns, stored, session)
      if (first.isRight && first != second) Left("two copies of it cannot be compared") else first
    } catch { case NonFatal(e) => Left(firstLine(Option(e.getMessage).getOrElse(e.toString))) }

  /** Returns the SQL of an expression after renaming the columns. */
  private def written(sql: String, session: Compat.Session)(rename: Seq[String] => Seq[String]): String = {
    val own = parsed(sql, session)
    if (own.exists(_.isInstanceOf[SubqueryExpression])) throw new IllegalArgumentException("it has a subquery")
    val names = own.collect { case a: UnresolvedAttribute => a }
    val made = names.sortBy(-_.origin.startIndex.get).foldLeft(sql) { (text, a) =>
      text.patch(a.origin.startIndex.get, rename(a.nameParts).map(quoteIfNeeded).mkString("."),
        a.origin.stopIndex.get + 1 - a.origin.startIndex.get)
    }
    val wanted = own.transform { case a: UnresolvedAttribute => UnresolvedAttribute(rename(a.nameParts)) }
    if (parsed(made, session) != wanted) throw new IllegalArgumentException("its columns cannot be named in another way")
    made
  }

  private def firstLine(text: String): String = text.linesIterator.map(_.trim).find(_.nonEmpty).getOrElse("")

  /** Parses an expression, and removes the alias that Spark adds to a field of a VARIANT. */
  private[predicate] def parsed(sql: String, session: Compat.Session): Expression =
    Tuple.unnamed(session.sessionState.sqlParser.parseExpression(sql)).transform {
      case named: Alias if named.child.getClass.getSimpleName == "SemiStructuredExtract" => named.child
      case named: Alias => throw new IllegalArgumentException(s"it has the name ${named.name}")
    }

  /** Resolves an expression whose SQL contains the columns' names in the files. */
  private def resolved(
      sql: String, kind: Option[String], columns: Seq[Attribute], stored: Stored,
      session: Compat.Session): Either[String, IndexedExpression] = {
    val names = new ColumnNames(columns, stored)
    val current = written(sql, session)(names.inTable)
    val own = parsed(current, session)
    val execution = session.sessionState.executePlan(Project(Seq(Alias(own, "value")()), Columns(columns.map(Variants.whole))))
    def path(e: Expression) = ColumnPath.of(e, a => columns.find(_.exprId == a.exprId).map(_.name))
    def declared(name: String) = columns.find(_.name == name).flatMap(a => CharVarcharUtils.getRawType(a.metadata))
    for {
      typed <- single(execution.analyzed)
      _ <- ExpressionRefusal.of(typed).toLeft(())
      optimized <- single(execution.optimizedPlan)
      _ <- ExpressionRefusal.of(optimized).orElse(ExpressionRefusal.ofColumns(normal(optimized, path), names.has, declared))
        .orElse(Tuple.refusal(own, optimized)).orElse(ManyKeys.refusal(kind, optimized.dataType)).toLeft(())
    } yield {
      val made = Tuple.key(optimized)
      val tuple = Tuple.columns(optimized).map(normal(_, path)).collect { case column: ColumnValue => column }
      val reading = ExpressionMeaning.of(made, path, stored, session)
      val many = kind.orElse(ManyKeys.of(made.dataType))
      IndexedExpression(key(sql, many), current, normal(made, path), tuple, reading)
    }
  }

  /**
   * If a plan computes a single expression from the columns of one row, returns this expression. Refuses a plan of any
   * other form.
   */
  private def single(plan: LogicalPlan): Either[String, Expression] = plan match {
    case Project(Seq(Alias(made, _)), _: Columns) => Right(made)
    case _ => Left("it is more than an expression of one row's columns")
  }

  /**
   * Returns the normal form of an expression. In the normal form, paths replace the columns, because a scan may read
   * only some fields of a struct. Catalyst's canonical form alone is not sufficient, because it reorders the terms of a
   * sum, which can change rounding or overflow.
   */
  def normal(e: Expression, path: Expression => Option[Seq[String]]): Expression =
    LambdaVariables.numbered(withPaths(e, path))

  private def withPaths(e: Expression, path: Expression => Option[Seq[String]]): Expression =
    Variants.withoutPushed(e).transformDown {
      // Spark resolves `right(c, 4)` to a conditional of this form. The normal form omits the conditional, because the
      // optimizer moves a comparison with the conditional into the branches.
      case If(IsNull(text), Literal(null, _), last @ Substring(of, _, _)) if text == of => withPaths(last, path)
      // For a map, `ElementAt` and `GetMapValue` both return the key's value, or NULL if the map lacks the key.
      case ElementAt(map, key, _, _) if map.dataType.isInstanceOf[MapType] => withPaths(GetMapValue(map, key), path)
      case column if path(column).nonEmpty => ColumnValue(path(column).get, column.dataType)
      case field if ColumnPath.inArray(field, path).nonEmpty => ColumnValue(ColumnPath.inArray(field, path).get, field.dataType)
    }
}

/** Replaces the names of lambda variables by numbers, because each query gives the variables other names and ids. */
private object LambdaVariables {
  private val anywhere = new UUID(0, 0)

  def numbered(e: Expression, renamed: Map[ExprId, NamedLambdaVariable] = Map.empty): Expression = e match {
    case variable: NamedLambdaVariable => renamed.getOrElse(variable.exprId, variable)
    case LambdaFunction(body, arguments, hidden) =>
      val own = arguments.zipWithIndex.collect { case (variable: NamedLambdaVariable, k) =>
        val place = renamed.size + k
        variable.exprId -> NamedLambdaVariable(place.toString, variable.dataType, nullable = true, ExprId(place, anywhere), value = null)
      }
      val all = renamed ++ own
      LambdaFunction(numbered(body, all), arguments.map(numbered(_, all).asInstanceOf[NamedExpression]), hidden)
    case other => other.mapChildren(numbered(_, renamed))
  }
}

/** A column in the normal form of an expression. */
case class ColumnValue(path: Seq[String], dataType: DataType) extends LeafExpression with Unevaluable {
  override def nullable: Boolean = true
}

/** A relation with these columns. The optimizer cannot derive anything about an expression from the relation's rows. */
private case class Columns(output: Seq[Attribute]) extends LeafNode {
  override def computeStats(): Statistics = Statistics(sizeInBytes = Long.MaxValue)
}
