package org.apache.spark.sql.sieve.statements

import org.apache.spark.sql.catalyst.analysis.TypeCheckResult
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.trees.UnaryLike
import org.apache.spark.sql.sieve.base.SieveException
import org.apache.spark.sql.types._

/**
 * The SQL function `sieve_key(x)`, which returns the code of the value `x`. Indexes sort values by these codes. Returns
 * NULL for NULL and for NaN.
 */
case class SieveKey(child: Expression) extends RuntimeReplaceable with UnaryLike[Expression] {
  override def prettyName: String = "sieve_key"
  override def dataType: DataType = LongType
  override def nullable: Boolean = child.nullable || floating
  override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)
  private def floating: Boolean = child.dataType == FloatType || child.dataType == DoubleType

  override def checkInputDataTypes(): TypeCheckResult = child.dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType |
        DateType | TimestampType | TimestampNTZType | StringType | BinaryType | NullType |
        _: DecimalType | _: VarcharType => TypeCheckResult.TypeCheckSuccess
    case other => throw new SieveException("SIEVE_UNSUPPORTED_TYPE",
      s"a value of type ${other.catalogString} has no key code, and its columns cannot be indexed; " +
        "indexable types are boolean, tinyint, smallint, int, bigint, float, double, decimal, date, " +
        "timestamp, timestamp_ntz, string, varchar and binary", state = "0A000")
  }

  override lazy val replacement: Expression = {
    def call(method: String, more: Expression*): Expression = StaticInvoke(
      KeyCodes.getClass, LongType, method, child +: more, returnNullable = floating)
    child.dataType match {
      case NullType => Literal(null, LongType)
      case t: DecimalType => call(
        if (t.precision <= Decimal.MAX_LONG_DIGITS) "ofShortDecimal" else "ofLongDecimal", Literal(t.scale))
      case _ => call("of")
    }
  }
}

object SieveKey {
  val info: ExpressionInfo = TableFunction.info(classOf[SieveKey], "sieve_key",
    "_FUNC_(x) - The key code by which a Sieve index orders the value `x`, " +
      "a BIGINT: x < y implies _FUNC_(x) <= _FUNC_(y). NULL for NULL and for NaN. Of strings and binary, the first 8 bytes.",
    Seq("SELECT _FUNC_(DATE '1970-01-02'), _FUNC_(-0.0D), _FUNC_(1.25BD);", "1  0  125"))

  def build(arguments: Seq[Expression]): Expression = arguments match {
    case Seq(value) => SieveKey(value)
    case others => throw TableFunction.refused(s"sieve_key(x) takes one value, not ${others.size}")
  }
}
