package org.apache.spark.sql.sieve

import org.apache.spark.sql.catalyst.analysis.TypeCheckResult
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** `sieve_key(x)`: the key code of a value, NULL for NULL and NaN. */
case class SieveKey(child: Expression) extends UnaryExpression {
  override def prettyName: String = "sieve_key"
  override def dataType: DataType = LongType
  override def nullable: Boolean = child.nullable || floating
  override protected def withNewChildInternal(made: Expression): Expression = copy(child = made)
  private def floating: Boolean = child.dataType == FloatType || child.dataType == DoubleType

  override def checkInputDataTypes(): TypeCheckResult = child.dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType |
        DateType | TimestampType | TimestampNTZType | StringType | BinaryType | NullType |
        _: DecimalType | _: VarcharType => TypeCheckResult.TypeCheckSuccess
    case other => throw new SieveException("SIEVE_UNSUPPORTED_TYPE",
      s"a value of type ${other.catalogString} has no key code, nor can a column of it be indexed; " +
        "types that can are boolean, tinyint, smallint, int, bigint, float, double, decimal, date, " +
        "timestamp, timestamp_ntz, string, varchar and binary", state = "0A000")
  }

  override protected def nullSafeEval(value: Any): Any = (value, child.dataType) match {
    case (b: Boolean, _) => if (b) 1L else 0L
    case (x: Float, _) => if (x.isNaN) null else KeyCodes.ofFloat(x)
    case (x: Double, _) => if (x.isNaN) null else KeyCodes.ofDouble(x)
    case (d: Decimal, t: DecimalType) if t.precision <= Decimal.MAX_LONG_DIGITS =>
      KeyCodes.ofShortDecimal(d, t.scale)
    case (d: Decimal, t: DecimalType) => KeyCodes.ofLongDecimal(d, t.scale)
    case (s: UTF8String, _) => KeyCodes.ofString(s)
    case (b: Array[Byte], _) => KeyCodes.ofBinary(b)
    case (n: Number, _) => n.longValue
  }

  override protected def doGenCode(context: CodegenContext, code: ExprCode): ExprCode =
    nullSafeCodeGen(context, code, value => {
      val codes = KeyCodes.getClass.getName.stripSuffix("$")
      val made = child.dataType match {
        case BooleanType => s"$value ? 1L : 0L"
        case FloatType => s"$codes.ofFloat($value)"
        case DoubleType => s"$codes.ofDouble($value)"
        case t: DecimalType if t.precision <= Decimal.MAX_LONG_DIGITS =>
          s"$codes.ofShortDecimal($value, ${t.scale})"
        case t: DecimalType => s"$codes.ofLongDecimal($value, ${t.scale})"
        case BinaryType => s"$codes.ofBinary($value)"
        case StringType | _: VarcharType => s"$codes.ofString($value)"
        case NullType => "0L"
        case _ => s"(long) $value"
      }
      // NaN alone is not itself.
      val nan = if (floating) s"${code.isNull} = $value != $value;" else ""
      s"$nan ${code.value} = $made;"
    })
}

object SieveKey {
  val info: ExpressionInfo = Functions.info(
    classOf[SieveKey], "sieve_key",
    "_FUNC_(x) - The key code by which a Sieve index orders the value `x`, a BIGINT: x < y implies " +
      "_FUNC_(x) <= _FUNC_(y). NULL for NULL and for NaN. Of strings and binary, the first 8 bytes.",
    """
    Examples:
      > SELECT _FUNC_(DATE '1970-01-02'), _FUNC_(-0.0D), _FUNC_(1.25BD);
       1  0  125
  """)

  def build(arguments: Seq[Expression]): Expression = arguments match {
    case Seq(value) => SieveKey(value)
    case others => throw Functions.refused(s"sieve_key(x) takes one value, not ${others.size}")
  }
}
