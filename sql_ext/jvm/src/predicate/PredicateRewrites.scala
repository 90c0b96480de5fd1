package org.apache.spark.sql.sieve.predicate

import scala.util.Try
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.Literal.{FalseLiteral, TrueLiteral}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Rewrites predicates that compare something other than a column, such as `coalesce(c, 0) = 1` or `(c = 1) IS NOT
 * TRUE`. The rewritten predicate is TRUE for each row that satisfies the original predicate. With `negated`, the
 * rewritten predicate is TRUE for each row that satisfies the negation of the original predicate.
 *
 * @param isColumn    returns true for a column, and for an expression that has an index
 * @param isNegatable returns true if a predicate is NULL only in rows with NULL in one of the predicate's columns
 */
private class PredicateRewrites(isColumn: Expression => Boolean, isNegatable: Expression => Boolean) {
  def of(e: Expression, negated: Boolean): Option[Expression] = e match {
    case _: And | _: Or | _: Not | _: Literal => None
    case _ if isColumn(e) => None
    case c: BinaryComparison if isColumn(c.left) && c.right.foldable || isColumn(c.right) && c.left.foldable => None
    case In(c, _) if isColumn(c) => None
    case EqualNullSafe(p, Literal(is: Boolean, _)) => truth(p, is, negated)
    case EqualNullSafe(Literal(is: Boolean, _), p) => truth(p, is, negated)
    case EqualTo(p, Literal(is: Boolean, _)) => Some(if (is == negated) Not(p) else p)
    case EqualTo(Literal(is: Boolean, _), p) => Some(if (is == negated) Not(p) else p)
    case IsNull(p) if !negated && !isColumn(p) && isNegatable(p) => Some(hasNull(p))
    case ArrayContains(Literal(array: ArrayData, ArrayType(of, _)), value) if value.dataType == of =>
      signed(In(value, array.toSeq[Any](of).map(Literal(_, of))), negated)
    case _ if choice(e).nonEmpty => branches(e, negated)
    case _ if !negated => positive(e)
    case _ => None
  }

  private def signed(e: Expression, negated: Boolean): Option[Expression] = Some(if (negated) Not(e) else e)

  /** Rewrites `p IS [NOT] TRUE` and `p IS [NOT] FALSE`. */
  private def truth(p: Expression, is: Boolean, negated: Boolean): Option[Expression] =
    if (!negated) Some(if (is) p else Not(p))
    else if (!isNegatable(p)) None
    else Some(Or(if (is) Not(p) else p, hasNull(p)))

  /** The condition that at least one of a predicate's columns is NULL. */
  private def hasNull(p: Expression): Expression =
    columns(p).map(IsNull(_): Expression).reduceOption(Or(_, _)).getOrElse(FalseLiteral)

  private def columns(e: Expression): Seq[Expression] =
    if (isColumn(e)) Seq(e) else e.children.flatMap(columns)

  // -- predicates with a conditional: coalesce, IF and CASE --

  private val mostBranches = 50

  /**
   * The first conditional expression in a predicate. Conditionals in lambda functions do not count, because their
   * values can differ between elements.
   */
  private def choice(e: Expression): Option[Expression] = e match {
    // The conditional expression itself can have an index.
    case _ if isColumn(e) => None
    case _: Coalesce | _: If | _: CaseWhen => Some(e)
    case _: HigherOrderFunction => None
    case _ => e.children.iterator.map(choice).collectFirst { case Some(found) => found }
  }

  /** Copies the predicate for each branch of a conditional, and combines each copy with the branch's condition. */
  private def branches(e: Expression, negated: Boolean): Option[Expression] = {
    val chosen = choice(e).get
    val values: Seq[(Option[Expression], Expression)] = chosen match {
      case Coalesce(of) => of.init.map(c => (Some(IsNotNull(c)), c)) :+ ((None, of.last))
      case If(p, a, b) => Seq((Some(p), a), (None, b))
      case CaseWhen(cases, other) =>
        cases.map { case (p, a) => (Some(p), a) } :+ ((None, other.getOrElse(Literal(null, chosen.dataType))))
    }
    val nested = e.collect { case c @ (_: Coalesce | _: If | _: CaseWhen) => c.children.size }
    if (nested.product > mostBranches || nested.size > 4) None
    else {
      val parts = values.zipWithIndex.map { case ((condition, value), at) =>
        val with1 = if (e eq chosen) value else e.transform { case c if c eq chosen => value }
        val earlier = values.take(at).flatMap(_._1).flatMap(isNotTrue)
        (earlier ++ condition.filter(isUsable) :+ folded(if (negated) Not(with1) else with1)).reduce(And(_, _))
      }
      Some(parts.reduce(Or(_, _)))
    }
  }

  private def isUsable(condition: Expression): Boolean = condition match {
    case IsNotNull(c) => isColumn(c)
    case _ => true
  }

  /** The condition that a predicate is FALSE or NULL. Returns None if this condition cannot be expressed. */
  private def isNotTrue(p: Expression): Option[Expression] = p match {
    case IsNotNull(c) if isColumn(c) => Some(IsNull(c))
    case IsNotNull(c) => Some(hasNull(c)).filter(_ => isNegatable(c))
    case IsNull(c) => Some(IsNotNull(c)).filter(_ => isColumn(c))
    case _ if isNegatable(p) => Some(Or(Not(p), hasNull(p)))
    case _ => None
  }

  /**
   * Evaluates a predicate of constants. If the evaluation fails, returns the predicate unchanged, and Spark itself
   * reports the error.
   */
  private def folded(p: Expression): Expression =
    if (p.foldable) Try(Literal(p.eval(), BooleanType)).getOrElse(p) else p

  // -- predicates that are rewritten only without negation ---------

  private def positive(e: Expression): Option[Expression] = e match {
    case LikeAny(c, patterns) => patterns.filter(_ != null).map(like(c, _)).reduceOption(Or(_, _))
    case LikeAll(c, patterns) if !patterns.contains(null) => patterns.map(like(c, _)).reduceOption(And(_, _))
    case StartsWith(f, Literal(v: UTF8String, _)) if MonotoneFunction.of(f).nonEmpty => starting(f, v)
    case Like(f, Literal(v: UTF8String, _), escape) if MonotoneFunction.of(f).nonEmpty =>
      FirstCharacters.fixed(v, escape).flatMap(starting(f, _))
    case InSet(f, set) if !isColumn(f) && MonotoneFunction.of(f).nonEmpty && set.size <= MonotoneSolver.mostValues =>
      Some(In(f, set.toSeq.map(Literal(_, f.dataType))))
    case _ if e.children.exists(c => MonotoneFunction.of(c).nonEmpty) => None
    case _ if e.children.exists(isColumn) && !e.isInstanceOf[RLike] => None
    case _ => ExactTexts.of(e).orElse(FirstCharacters.of(e))
  }

  private def like(c: Expression, pattern: UTF8String): Expression = Like(c, Literal(pattern, StringType), '\\')

  private def starting(f: Expression, prefix: UTF8String): Option[Expression] = FirstCharacters.after(prefix).map { next =>
    And(GreaterThanOrEqual(f, Literal(prefix, StringType)), LessThan(f, Literal(next, StringType)))
  }
}

/**
 * Rewrites a comparison of `CAST(c AS STRING)` with constants as a comparison of `c`. The type of `c` must have exactly
 * one text for each value. If Spark would write a constant in another way, no value equals the constant. An example is
 * '042', because Spark writes '42'.
 */
private object ExactTexts {
  def of(e: Expression): Option[Expression] = e match {
    case EqualTo(Written(cast), Literal(v: UTF8String, StringType)) => Some(among(cast, Seq(v)))
    case EqualTo(Literal(v: UTF8String, StringType), Written(cast)) => Some(among(cast, Seq(v)))
    case EqualNullSafe(Written(cast), Literal(v: UTF8String, StringType)) => Some(among(cast, Seq(v)))
    case EqualNullSafe(Literal(v: UTF8String, StringType), Written(cast)) => Some(among(cast, Seq(v)))
    case In(Written(cast), list) if list.forall(_.isInstanceOf[Literal]) =>
      Some(among(cast, list.map(_.asInstanceOf[Literal].value)))
    case InSet(Written(cast), set) => Some(among(cast, set.toSeq))
    case _ => None
  }

  private object Written {
    def unapply(e: Expression): Option[Cast] = e match {
      case c @ Cast(child, StringType, _, _) if !child.foldable => child.dataType match {
        case _: IntegralType | BooleanType | _: DecimalType => Some(c)
        case _ => None
      }
      case _ => None
    }
  }

  private def among(cast: Cast, texts: Seq[Any]): Expression = {
    val values = texts.collect { case text: UTF8String => text }.flatMap(valueOf(cast, _))
    if (values.isEmpty) FalseLiteral else if (values.size == 1) EqualTo(cast.child, values.head) else In(cast.child, values)
  }

  /** The only value whose text is `text`. Spark's own casts convert the text to the value and back. */
  private def valueOf(cast: Cast, text: UTF8String): Option[Literal] = {
    val read = Cast(Literal(text, StringType), cast.child.dataType, cast.timeZoneId, EvalMode.TRY)
    Option(read.eval()).map(Literal(_, cast.child.dataType)).filter { value =>
      cast.withNewChildren(Seq(value)).eval() == text
    }
  }
}
