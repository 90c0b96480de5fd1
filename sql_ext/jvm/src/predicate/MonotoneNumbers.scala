package org.apache.spark.sql.sieve.predicate

import scala.math.BigDecimal.RoundingMode.{CEILING, FLOOR}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeConstants.MICROS_PER_SECOND
import org.apache.spark.sql.types._

/**
 * The monotone functions of numbers: arithmetic with a constant, rounding and casts. Arithmetic of integers and
 * decimals is exact, but the results must fit into the result type. Floating-point results are rounded, and rounding
 * keeps the order. Infinities and NaN are excluded from the arguments, because a cast can turn them into any value.
 */
private object MonotoneNumbers {
  import MonotoneFunction.{between, within}

  def of(e: Expression): Option[MonotoneFunction] = e match {
    case _: Add | _: Subtract | _: Multiply | _: Divide => arithmetic(e.asInstanceOf[BinaryArithmetic])
    case d: IntegralDivide if d.left.dataType == LongType => Constant(d.right).filter(_ != 0).flatMap { k =>
      // The quotient of the least BIGINT and -1 overflows.
      within(d.left, if (k == -1) 1 else 0, rises = k > 0)
    }
    case UnaryMinus(child, _) => child.dataType match {
      case _: IntegralType | FloatType | DoubleType => within(child, 1, rises = false)
      case _: DecimalType => within(child, rises = false)
      case _ => None
    }
    case BitwiseNot(child) => integral(child).flatMap(within(_, rises = false))
    case ShiftRight(child, Literal(_: Int, _)) => integral(child).flatMap(within(_))
    case floor: Floor => rounded(floor.child, e)
    case ceil: Ceil => rounded(ceil.child, e)
    case Rint(child) => rounded(child, e)
    case r: RoundBase => r.children match {
      case Seq(child, Literal(digits: Int, _)) if digits >= 0 => rounded(child, e)
      case _ => None
    }
    case c: Cast => cast(c)
    case _ => None
  }

  private def integral(e: Expression): Option[Expression] = Some(e).filter(_.dataType.isInstanceOf[IntegralType])

  private def rounded(child: Expression, e: Expression): Option[MonotoneFunction] = child.dataType match {
    case FloatType | DoubleType => within(child, 1)
    case _: DecimalType => fitting(child, e.dataType)(identity)
    case _ => None
  }

  /** Arithmetic of a column and a constant with `+`, `-`, `*` or `/`. */
  private def arithmetic(e: BinaryArithmetic): Option[MonotoneFunction] = e.dataType match {
    case _: IntegralType | _: DecimalType =>
      (e, Constant(e.left), Constant(e.right)) match {
        case (_: Add, None, Some(k)) => fitting(e.left, e.dataType)(_ - k)
        case (_: Add, Some(k), None) => fitting(e.right, e.dataType)(_ - k)
        case (_: Subtract, None, Some(k)) => fitting(e.left, e.dataType)(_ + k)
        case (_: Subtract, Some(k), None) => fitting(e.right, e.dataType, rises = false)(k - _)
        case (_: Multiply, None, Some(k)) if k != 0 => fitting(e.left, e.dataType, k > 0)(quotient(_, k))
        case (_: Multiply, Some(k), None) if k != 0 => fitting(e.right, e.dataType, k > 0)(quotient(_, k))
        case (_: Divide, None, Some(k)) if k != 0 => fitting(e.left, e.dataType, k > 0)(_ * k)
        case _ => None
      }
    case FloatType | DoubleType =>
      (e, Finite(e.left), Finite(e.right)) match {
        case (_: Add | _: Subtract, None, Some(_)) => within(e.left, 1)
        case (_: Add, Some(_), None) => within(e.right, 1)
        case (_: Subtract, Some(_), None) => within(e.right, 1, rises = false)
        case (_: Multiply | _: Divide, None, Some(k)) if k != 0 => within(e.left, 1, rises = k > 0)
        case (_: Multiply, Some(k), None) if k != 0 => within(e.right, 1, rises = k > 0)
        case _ => None
      }
    case _ => None
  }

  // Rounds the quotient towards zero after 80 digits, so that the exact product with `k` does not exceed `x`.
  private def quotient(x: BigDecimal, k: BigDecimal): BigDecimal =
    exact(BigDecimal(x.bigDecimal.divide(k.bigDecimal, new java.math.MathContext(80, java.math.RoundingMode.DOWN))))

  /**
   * Creates a function of integers or decimals. The function is monotone for arguments whose exact result fits into the
   * type `to`.
   *
   * @param inverse returns the argument that has a given exact result
   */
  private def fitting(argument: Expression, to: DataType, rises: Boolean = true)(
      inverse: BigDecimal => BigDecimal): Option[MonotoneFunction] = {
    def scale(t: DataType) = t match { case d: DecimalType => d.scale; case _ => 0 }
    for (results <- NumberedValues.of(to); _ <- NumberedValues.of(argument.dataType)) yield {
      val ends = Seq(results.low, results.high)
        .map(end => inverse(exact(BigDecimal(new java.math.BigDecimal(end.bigInteger, scale(to))))) * ten(scale(argument.dataType)))
      between(argument, ends.min.setScale(0, CEILING).toBigInt, ends.max.setScale(0, FLOOR).toBigInt, rises = rises).get
    }
  }
  private def exact(x: BigDecimal) = new BigDecimal(x.bigDecimal, java.math.MathContext.UNLIMITED)
  // A legacy setting of Spark permits a negative scale, so `digits` can be negative.
  private def ten(digits: Int) = exact(BigDecimal(java.math.BigDecimal.ONE.scaleByPowerOfTen(digits)))

  private def cast(c: Cast): Option[MonotoneFunction] = (c.child.dataType, c.dataType) match {
    case (_: IntegralType | _: DecimalType, _: IntegralType | _: DecimalType) => fitting(c.child, c.dataType)(identity)
    case (_: IntegralType | _: DecimalType | FloatType, DoubleType) => within(c.child)
    case (_: IntegralType | DoubleType, FloatType) => within(c.child)
    case (from @ (FloatType | DoubleType), to: IntegralType) =>
      // The float nearest to a bound of the integer type can be outside the type, such as 2^63. The next float towards
      // zero is always inside the type.
      NumberedValues.of(to).flatMap { all =>
        val (low, high) = (floor(from, all.low), floor(from, all.high))
        between(c.child, low + 1, high - 1)
      }
    // If a number of seconds is outside the range of timestamps, Spark returns the least or the greatest timestamp.
    case (_: IntegralType, TimestampType) => within(c.child)
    case (TimestampType, FloatType | DoubleType | LongType) => within(c.child)
    case (TimestampType, to: IntegralType) => NumberedValues.of(to).flatMap { all =>
      between(c.child, all.low * MICROS_PER_SECOND, (all.high + 1) * MICROS_PER_SECOND - 1)
    }
    case _ => None
  }

  /** The ordinal of the float that is nearest to an integer. */
  private def floor(t: DataType, x: BigInt): BigInt = {
    def mirrored(bits: Long, most: Long) = if (bits >= 0) bits else bits ^ most
    if (t == FloatType) mirrored(java.lang.Float.floatToRawIntBits(x.toFloat).toLong, Int.MaxValue)
    else mirrored(java.lang.Double.doubleToRawLongBits(x.toDouble), Long.MaxValue)
  }

  /** Returns the value of a constant integer or decimal. */
  private object Constant {
    def apply(e: Expression): Option[BigDecimal] = e match {
      case Literal(d: Decimal, _: DecimalType) => Some(exact(BigDecimal(d.toJavaBigDecimal)))
      case Literal(n: Number, _: IntegralType) => Some(exact(BigDecimal(n.longValue)))
      case _ => None
    }
  }

  /** Returns the value of a constant float that is finite. */
  private object Finite {
    def apply(e: Expression): Option[Double] = e match {
      case Literal(x: Float, FloatType) if java.lang.Float.isFinite(x) => Some(x.toDouble)
      case Literal(x: Double, DoubleType) if java.lang.Double.isFinite(x) => Some(x)
      case _ => None
    }
  }
}
