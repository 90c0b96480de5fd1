package org.apache.spark.sql.sieve

import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Proxy}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * Hands SIEVE statements on and everything else, untouched, to the parser that was there. A proxy,
 * because the methods of `ParserInterface` differ between Spark versions.
 */
object StatementParser {
  def apply(session: SparkSession, delegate: ParserInterface): ParserInterface = {
    val handler = new InvocationHandler {
      override def invoke(proxy: AnyRef, method: Method, args: Array[AnyRef]): AnyRef = {
        val text = if (args == null) None else args.headOption.collect { case s: String => s }
        if (method.getName.startsWith("parsePlan") && text.exists(owns)) {
          // A proxy may raise only what the interface declares; the plan raises it as it is run.
          try SieveStatement(session.asInstanceOf[Compat.Session], text.get)
          catch { case e: SieveException => RefusedStatement(e) }
        } else {
          try {
            val parsed = method.invoke(delegate, (if (args == null) Array.empty[AnyRef] else args): _*)
            parsed match {
              case plan: LogicalPlan if changesTables(plan) => Events.follow(session.asInstanceOf[Compat.Session])
              case _ =>
            }
            parsed
          }
          catch { case e: InvocationTargetException => throw e.getCause }
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

  // Possessive throughout: Java's backtracking would take a stack frame for each blank.
  private val gap = """(?:\s++|--[^\n]*+(?:\n|$)|/\*(?s:.*?)\*/)"""
  private val verbs = "CREATE|REFRESH|DROP|ALTER|SHOW|EXPLAIN|CHECK|ESTIMATE"
  // A table may be called sieve, so the verbs that take a bare table name need one word more.
  private val verbsOfTables = "DESCRIBE|DESC|OPTIMIZE|VACUUM"
  private val ours =
    s"(?i)^$gap*+(?:(?:$verbs)$gap++SIEVE\\b|(?:$verbsOfTables)$gap++SIEVE$gap++INDEX)".r

  /** Decided by the position of the keywords, so that no literal or name can claim a statement. */
  def owns(sql: String): Boolean = ours.findFirstIn(sql).isDefined
}
