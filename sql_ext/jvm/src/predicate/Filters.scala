package org.apache.spark.sql.sieve.predicate

import java.util.Base64
import scala.util.Try
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.sieve.formats.TableFormat
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Translates Catalyst filters to the predicate tree that the front end reads. The tree names columns, contains literals
 * as Spark's internal values, and has NOT only at its leaves. An expression that the tree cannot represent becomes
 * "unknown", which any row can satisfy.
 *
 * @param elements the variables of lambda functions that represent elements of indexed arrays, each with the key of the
 *                 array's index
 */
class Filters(
    columns: Map[ExprId, String], partitions: Set[String], stored: Seq[String] => Seq[String],
    expressions: IndexedExpressions = IndexedExpressions.none, elements: Map[ExprId, Seq[String]] = Map.empty) {
  /** A node of the tree as a JSON object. */
  type Node = Map[String, Any]

  // The maximum depth of the tree. JSON parsers reject trees that are much deeper than this maximum.
  private val deepest = 200
  // The maximum number of keys in a predicate on a tuple. Each combination of values of the tuple's columns is one key.
  private val mostTuples = 1000

  def conjunction(filters: Seq[Expression]): Node =
    join("and", filters.map(f => translate(f, negated = false, 1)) ++ tuples(filters))

  /**
   * Returns predicates on indexed tuples. A tuple gets a predicate if the conjunction restricts each of the tuple's
   * columns to a list of values.
   */
  private def tuples(conjuncts: Seq[Expression]): Seq[Node] =
    if (expressions.tuples.isEmpty) Nil
    else {
      val values: Map[Seq[String], Seq[Literal]] = conjuncts.collect {
        case Equality(Column(path, _), v: Literal) if v.value != null => path -> Seq(v)
        case Equality(v: Literal, Column(path, _)) if v.value != null => path -> Seq(v)
        case In(Column(path, _), list) if list.forall(_.isInstanceOf[Literal]) => path -> list.collect { case v: Literal => v }
        case InSet(Column(path, t), set) => path -> set.toSeq.map(Literal(_, t))
        // The optimizer turns `flag = true` into `flag`.
        case Column(path, BooleanType) => path -> Seq(Literal.TrueLiteral)
        case Not(Column(path, BooleanType)) => path -> Seq(Literal.FalseLiteral)
      }.toMap
      for {
        tuple <- expressions.tuples
        found = tuple.columns.flatMap(c => values.get(c.path))
        if found.size == tuple.columns.size && found.map(list => BigInt(list.size)).product <= mostTuples
        rows = found.foldLeft(Seq(Seq.empty[Literal])) { (rows, list) => rows.flatMap(row => list.map(row :+ _)) }
        keys = rows.filter(_.forall(_.value != null)).map(tuple.keyOf)
        if keys.nonEmpty && !keys.contains(None)
      } yield leaf("in", tuple.key) + ("values" -> keys.flatten)
    }

  /**
   * Translates `(a, b) IN ((1, 2), (3, 4))` to a predicate on the keys of the tuple `(a, b)`. Returns None if this
   * tuple has no index.
   */
  private def members(columns: Seq[Expression], rows: Seq[Any]): Option[Node] = {
    val values = columns.flatMap(c => plain(c).map(ColumnValue(_, c.dataType)))
    val tuple = if (values.size == columns.size) expressions.tuple(values) else None
    tuple.flatMap { tuple =>
      val places = tuple.columns.map(c => values.indexWhere(_.path == c.path))
      val keys = rows.collect { case row: InternalRow =>
        tuple.keyOf(places.map(k => Literal(row.get(k, columns(k).dataType), columns(k).dataType)))
      }
      if (keys.contains(None)) None else Some(leaf("in", tuple.key) + ("values" -> keys.flatten))
    }
  }

  /**
   * The path by which an index names a column, a field or an indexed expression. Returns None for any other expression.
   */
  def column(e: Expression): Option[Seq[String]] = Column.unapply(e).map { case (path, _) => stored(path) }

  def isPartition(e: Expression): Boolean = e match {
    case a: AttributeReference => columns.get(a.exprId).exists(partitions)
    case _ => false
  }

  /** The sort orders of a top-k query whose scan has these filters. `isNegatable` must be true for each filter. */
  def orders(first: TopK, filters: Seq[Expression]): Seq[Node] = first.orders.map { order =>
    val path = Column.unapply(order.child).get._1
    /** True if a filter only requires that the column, or a struct that contains it, is not NULL. */
    def isPresence(e: Expression) = e match {
      case IsNotNull(Column(of, _)) => path.startsWith(of)
      case _ => false
    }
    val dropsNulls = first.isOfValues || filters.exists {
      case IsNotNull(Column(of, _)) => of == path
      case _ => false
    }
    val nulls =
      if (dropsNulls) "never" else if (order.nullOrdering == NullsFirst) "first" else "last"
    val against = filters.filterNot(dropsNulls && isPresence(_)).flatMap { f =>
      val named = paths(f).distinct.filterNot(dropsNulls && _ == path)
      translate(f, negated = true, 1) +: named.map(leaf("is null", _))
    }
    Map("col" -> stored(path), "descending" -> (order.direction == Descending), "nulls" -> nulls,
      "rows" -> first.rows, "ties" -> !first.isOfValues, "against" -> join("or", against))
  }

  /** The paths of the columns in a filter. For a field of a struct, only the field's own path is included. */
  private def paths(e: Expression): Seq[Seq[String]] = e match {
    case Column(path, _) => Seq(path)
    case _ => e.children.flatMap(paths)
  }

  /**
   * True if each row without NULL in the filter's columns satisfies either the filter or its negation. False if a
   * function in the filter can fail, or can return NULL although no argument is NULL.
   */
  def isNegatable(e: Expression): Boolean = e match {
    case Not(child) => isNegatable(child)
    case And(a, b) => isNegatable(a) && isNegatable(b)
    case Or(a, b) => isNegatable(a) && isNegatable(b)
    case c: BinaryComparison => (c.left, c.right) match {
      case (Column(_, _), Literal(v, _)) => v != null
      case (Literal(v, _), Column(_, _)) => v != null
      case _ => false
    }
    case In(Column(_, _), Literals(values)) => !values.contains(null)
    case InSet(Column(_, _), values) => !values.contains(null)
    case IsNull(Column(_, _)) | IsNotNull(Column(_, _)) | Column(_, BooleanType) => true
    case _ => false
  }

  private val rewrites = new PredicateRewrites(Column.unapply(_).nonEmpty, isNegatable)

  private def translate(e: Expression, negated: Boolean, depth: Int): Node = e match {
    case _ if depth > deepest => unknown(e)
    // The next cases are recursive, and a chain of thousands of ORs would overflow the stack.
    case _: And | _: Or | _: Not if !expressions.haveRoot(e) => direct(e, negated, depth)
    case _ if !e.deterministic => unknown(e)
    case Column(path, BooleanType) => leaf("=", path) + ("value" -> !negated)
    case ElementPredicate(found) if !negated && found.indexed(elementsOf).nonEmpty =>
      val (holds, keys) = found.indexed(elementsOf).get
      // Nested lambda variables over the same array can represent different elements. The tree cannot distinguish the
      // elements, so the inner variable replaces the outer variable.
      val own = elements.filterNot(other => keys.values.exists(_ == other._2)) ++ keys
      val one = new Filters(columns, partitions, stored, expressions, own).translate(holds, negated = false, depth + 1)
      join("exists", Seq(one))
    case _ => parts(e, negated, depth).getOrElse(whole(e, negated, depth))
  }

  private def whole(e: Expression, negated: Boolean, depth: Int): Node =
    rewrites.of(e, negated).fold(direct(e, negated, depth))(translate(_, negated = false, depth + 1))

  /**
   * If a text has an index on substrings, translates a predicate on parts of the text. If the text also has an index of
   * another kind, the result uses both indexes.
   */
  private def parts(e: Expression, negated: Boolean, depth: Int): Option[Node] =
    for {
      of <- PartsOfText.of(e, negated)
      // For a comparison with a whole text, an ordinary index is better than an index on substrings.
      if !of.isWhole || !expressions.areProposed
      key <- expressions.key(ManyKeys.substring, of.text, plain)
    } yield {
      val other = whole(e, negated, depth)
      val others = Seq(other).filter(_("op") != "unknown")
      val signature = Some(of.signature).filter(_.nonEmpty).map(hashes => leaf("signature", key) + ("values" -> hashes))
      val nodes = others ++ of.grams.map(gram => join("exists", Seq(leaf("=", key) + ("value" -> gram)))) ++
        signature.map(all => join("exists", Seq(all)))
      if (nodes.nonEmpty) join("and", nodes) else other + ("why" -> Grams.tooShort(why(e)))
    }

  private def direct(e: Expression, negated: Boolean, depth: Int): Node = e match {
    case Not(child) => translate(child, !negated, depth + 1)
    case _: And =>
      val parts = operands(e) { case And(a, b) => (a, b) }
      val whole = if (negated) Nil else tuples(parts)
      join(if (negated) "or" else "and", parts.map(translate(_, negated, depth + 1)) ++ whole)
    case _: Or =>
      val parts = operands(e) { case Or(a, b) => (a, b) }
      join(if (negated) "and" else "or", parts.map(translate(_, negated, depth + 1)))
    case Literal(v, BooleanType) => node(if (v != null && v != negated) "true" else "false")
    case EqualTo(Columns(columns), Literal(row, _)) if !negated => members(columns, Seq(row)).getOrElse(unknown(e))
    case EqualTo(Literal(row, _), Columns(columns)) if !negated => members(columns, Seq(row)).getOrElse(unknown(e))
    case c: BinaryComparison => compare(c, negated)
    case In(Columns(columns), Literals(rows)) if !negated => members(columns, rows).getOrElse(unknown(e))
    case InSet(Columns(columns), rows) if !negated => members(columns, rows.toSeq).getOrElse(unknown(e))
    case In(Column(path, t), Literals(values)) => member(e, path, t, values, negated)
    case InSet(Column(path, t), set) => member(e, path, t, set.toSeq, negated)
    case AmongPackedKeys(Column(path, t), keys) if !negated =>
      leaf("in", path) ++ Map("packed" -> keys.base64, "hashed" -> PackedKeys.isHashed(t))
    case In(f, list @ Literals(_)) if !negated && list.size <= MonotoneSolver.mostValues =>
      join("or", list.map(v => translate(EqualTo(f, v), negated = false, depth + 1)))
    case IsNull(Column(path, _)) => leaf(if (negated) "is not null" else "is null", path)
    case IsNotNull(Column(path, _)) => leaf(if (negated) "is null" else "is not null", path)
    case StartsWith(Column(path, StringType), Literal(v: UTF8String, StringType)) if !negated =>
      leaf("starts with", path) + ("value" -> base64(v.getBytes))
    case Like(Column(path, StringType), Literal(v: UTF8String, StringType), escape) if !negated =>
      FirstCharacters.fixed(v, escape).fold(unknown(e)) { fixed =>
        leaf("starts with", path) + ("value" -> base64(fixed.getBytes))
      }
    case _ => unknown(e)
  }

  /**
   * The operands of a chain of ANDs or of ORs, in order. The method does not overflow the stack, however long the chain
   * is.
   */
  private def operands(e: Expression)(
      split: PartialFunction[Expression, (Expression, Expression)]): Seq[Expression] = {
    val found = Seq.newBuilder[Expression]
    var open = List(e)
    while (open.nonEmpty) {
      val next = open.head
      open = open.tail
      if (split.isDefinedAt(next)) { val (a, b) = split(next); open = a :: b :: open }
      else found += next
    }
    found.result()
  }

  private def compare(c: BinaryComparison, negated: Boolean): Node = {
    val (left, right, op) = (constant(c.left), constant(c.right)) match {
      case (None, Some(v)) => (c.left, v, symbol(c))
      case (Some(v), None) => (c.right, v, mirrored(symbol(c)))
      case _ => return unknown(c)
    }
    (left, right.value, op) match {
      case (Column(path, _), null, "<=>") => leaf(if (negated) "is not null" else "is null", path)
      case (_, null, "<=>") => unknown(c)
      case (_, null, _) => node("false")
      case (Column(path, t), v, o) if right.dataType == t =>
        val plain = if (o == "<=>") "=" else o
        val made = compared(c, if (negated) opposite(plain) else plain, path, v, t)
        if (negated && o == "<=>" && made.contains("value")) made + ("null" -> true) else made
      case (_, _, "<=>") if negated => unknown(c)
      case (f, v, o) =>
        val plain = if (negated) opposite(o) else if (o == "<=>") "=" else o
        new MonotoneSolver(Column.unapply(_: Expression).map(_._2)).solve(f, plain, v)
          .fold(unknown(c)) { case (column, ranges) => join("or", ranges.map(between(c, column, _))) }
    }
  }

  private def compared(e: Expression, op: String, path: Seq[String], v: Any, t: DataType): Node =
    value(v, t).fold(unknown(e))(made => leaf(op, path) + ("value" -> made))

  private def between(e: Expression, column: Expression, range: (Option[Any], Option[Any])): Node = {
    val Column(path, t) = column
    val bounds = range._1.map(compared(e, ">=", path, _, t)).toSeq ++
      range._2.map(compared(e, "<=", path, _, t))
    if (bounds.isEmpty) leaf("is not null", path) else join("and", bounds)
  }

  private def member(
      e: Expression, path: Seq[String], t: DataType, values: Seq[Any], negated: Boolean): Node = {
    val present = values.filter(_ != null)
    if (negated && present.size < values.size) return node("false")
    // A set distinguishes -0.0 from 0.0, but a comparison does not. If the set contains only one zero, NOT IN can
    // accept the other zero. So the translated NOT IN excludes no zero.
    val counted = if (!negated) present else present.filterNot(_ == 0.0)
    val made = counted.map(value(_, t))
    if (made.contains(None)) unknown(e)
    else leaf(if (negated) "not in" else "in", path) + ("values" -> made.flatten)
  }

  /**
   * Matches a plain column of the table, a field of a struct column, or an expression with an index. Returns the path
   * and the type. Columns are identified by their expression ids.
   */
  private object Column {
    def unapply(e: Expression): Option[(Seq[String], DataType)] = e match {
      case variable: NamedLambdaVariable => elements.get(variable.exprId).map((_, e.dataType))
      case _ => plain(e).map((_, e.dataType)).orElse(expressions.key(e, plain))
    }
  }

  private def plain(e: Expression): Option[Seq[String]] =
    ColumnPath.of(e, a => columns.get(a.exprId).filterNot(partitions))

  /** The key of the index on an array's elements. Returns None if the array has no index of this kind. */
  private def elementsOf(array: Expression): Option[Seq[String]] = expressions.key(ManyKeys.elements, array, plain)

  /** Matches a struct of several expressions, such as `(a, b)`, and returns the expressions. */
  private object Columns {
    def unapply(e: Expression): Option[Seq[Expression]] = e match {
      case CreateNamedStruct(parts) if expressions.areProposed || expressions.tuples.nonEmpty => Some(Tuple.values(parts))
      case _ => None
    }
  }

  private object Literals {
    def unapply(list: Seq[Expression]): Option[Seq[Any]] =
      if (list.forall(_.isInstanceOf[Literal])) Some(list.map(_.asInstanceOf[Literal].value)) else None
  }

  private def constant(e: Expression): Option[Literal] = e match {
    case l: Literal => Some(l)
    // Ignores an error of the expression, because the query itself fails with Spark's own error if it evaluates the
    // expression.
    case _ if e.foldable && e.deterministic => Try(Literal(e.eval(), e.dataType)).toOption
    case _ => None
  }

  private def value(v: Any, t: DataType): Option[Any] = (v, t) match {
    case (_: Boolean, BooleanType) | (_: Byte, ByteType) | (_: Short, ShortType) |
        (_: Int, IntegerType | DateType) | (_: Long, LongType | TimestampType | TimestampNTZType) => Some(v)
    case (x: Float, FloatType) => Some(java.lang.Float.floatToRawIntBits(x))
    case (x: Double, DoubleType) => Some(java.lang.Double.doubleToRawLongBits(x))
    case (d: Decimal, t: DecimalType) =>
      Try(d.toJavaBigDecimal.setScale(t.scale)).toOption.map(_.unscaledValue.toString)
    case (s: UTF8String, StringType) => Some(base64(s.getBytes))
    case (b: Array[Byte], BinaryType) => Some(base64(b))
    case _ => None
  }

  private def base64(bytes: Array[Byte]): String = Base64.getEncoder.encodeToString(bytes)

  private def node(op: String): Node = Map("op" -> op)
  private def join(op: String, args: Seq[Node]): Node = Map("op" -> op, "args" -> args)
  private def leaf(op: String, path: Seq[String]): Node = Map("op" -> op, "col" -> stored(path))

  private def unknown(e: Expression): Node = {
    val names = e.references.toSeq.flatMap(a => columns.get(a.exprId))
    val of = names.map(name => stored(Seq(name)).head) ++ expressions.over(names) ++
      e.collect { case variable: NamedLambdaVariable => variable }.flatMap(v => elements.get(v.exprId)).map(_(1))
    Map("op" -> "unknown", "why" -> why(e)) ++ Some(of).filter(_.nonEmpty).map("names" -> _)
  }

  /** The SQL name of an expression's first function that no index can evaluate. */
  private def why(e: Expression): String =
    FunctionNames.of(unordered(e).headOption.getOrElse(e))

  /** An expression's outermost functions that are not known to be monotone. */
  private def unordered(e: Expression): Seq[Expression] = e match {
    case Column(_, _) | _: Literal | _: AttributeReference => Nil
    case _: HigherOrderFunction => Seq(e)
    case _: Predicate => e.children.flatMap(unordered)
    case _ => MonotoneFunction.of(e).fold(Seq(e))(f => unordered(f.argument))
  }

  private def symbol(c: BinaryComparison): String = c match {
    case _: EqualTo => "="
    case _: EqualNullSafe => "<=>"
    case _: LessThan => "<"
    case _: LessThanOrEqual => "<="
    case _: GreaterThan => ">"
    case _: GreaterThanOrEqual => ">="
  }
  private val mirrored = Map("=" -> "=", "<=>" -> "<=>", "<" -> ">", "<=" -> ">=", ">" -> "<", ">=" -> "<=")
  private val opposite = Map("=" -> "!=", "!=" -> "=", "<" -> ">=", "<=" -> ">", ">" -> "<=", ">=" -> "<")
}

object Filters {
  /**
   * True if the filter is the constant with which Spark replaces a dropped run-time filter. Spark drops a run-time
   * filter if no other operator needs the filter's keys.
   */
  def isUnused(filter: Expression): Boolean =
    filter == DynamicPruningExpression(Literal.TrueLiteral)

  def of(
      output: Seq[Attribute], relation: HadoopFsRelation,
      expressions: IndexedExpressions = IndexedExpressions.none): Filters = new Filters(
    output.map(a => a.exprId -> a.name).toMap, relation.partitionSchema.fieldNames.toSet,
    TableFormat.of(relation).stored(relation), expressions)

  /**
   * The filters whose result depends only on the row. Nondeterministic filters are excluded. Filters with a subquery's
   * result or a join's keys are excluded, too, because only a running query has these values. Spark itself passes only
   * evaluable filters to a listing of files, so the listings of other libraries might support only evaluable filters.
   */
  def evaluable(filters: Seq[Expression]): Seq[Expression] =
    TopK.without(filters).filterNot(isUnused).map {
      case DynamicPruningExpression(valued) => valued
      case filter => filter
    }.filter(f => f.deterministic && !f.exists(_.isInstanceOf[PlanExpression[_]]))
}
