package org.apache.spark.sql.sieve

import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Proxy}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.SetCommand

/**
 * Hands SIEVE statements on and everything else, untouched, to the parser that was there. A proxy,
 * because the methods of `ParserInterface` differ between Spark versions.
 */
object StatementParser {
  def apply(session: SparkSession, delegate: ParserInterface): ParserInterface = {
    val claims = new Claims(session.asInstanceOf[Compat.Session], delegate)
    val handler = new InvocationHandler {
      override def invoke(proxy: AnyRef, method: Method, args: Array[AnyRef]): AnyRef = {
        val text = if (args == null) None else args.headOption.collect { case s: String => s }
        val plans = method.getName.startsWith("parsePlan")
        // A proxy may raise only what the interface declares; the plan raises it as it is run.
        def statement(sql: String): Either[SieveException, LogicalPlan] =
          try Right(SieveStatement(session.asInstanceOf[Compat.Session], sql))
          catch { case e: SieveException => Left(e) }
        if (plans && text.exists(claims.owns)) statement(text.get).fold(RefusedStatement(_), identity)
        else {
          try {
            val parsed = method.invoke(delegate, (if (args == null) Array.empty[AnyRef] else args): _*)
            parsed match {
              case SetCommand(Some((key, Some(_)))) => Settings.inspectName(key)
              case plan: LogicalPlan if changesTables(plan) => Events.follow(session.asInstanceOf[Compat.Session])
              case _ =>
            }
            parsed
          }
          catch {
            case e: InvocationTargetException => e.getCause match {
              case refusal: ParseException if plans && text.exists(Claims.isNear) =>
                statement(text.get) match {
                  case Left(own) if own.condition == "SIEVE_SYNTAX_ERROR" => RefusedStatement(own)
                  case _ => throw refusal
                }
              case other => throw other
            }
          }
        }
      }
    }
    Proxy.newProxyInstance(getClass.getClassLoader, Array[Class[_]](classOf[ParserInterface]), handler)
      .asInstanceOf[ParserInterface]
  }

  /** By the names of Spark's plans: whether one may change the catalog, which it then needs anyhow. */
  private def changesTables(plan: LogicalPlan): Boolean =
    changes.findFirstIn(plan.getClass.getSimpleName).isDefined
  private val changes = "^(Drop|Rename|Alter|Set[TNV]|Unset|Add|Replace|Create|Insert|Truncate|Recover|Load)".r
}
