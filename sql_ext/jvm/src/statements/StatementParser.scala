package org.apache.spark.sql.sieve.statements

import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Modifier, Proxy}
import scala.util.Try
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.SetCommand
import org.apache.spark.sql.sieve.base.{Compat, Settings, SieveException}
import org.apache.spark.sql.sieve.observe.CatalogEvents

/**
 * Parses SIEVE statements, and passes all other text unchanged to the session's previous parser. The parser is a proxy,
 * because the methods of `ParserInterface` differ between the releases of Spark.
 */
object StatementParser {
  def apply(session: SparkSession, delegate: ParserInterface): ParserInterface = {
    val own = session.asInstanceOf[Compat.Session]
    val ownership = new StatementOwnership(own, delegate)
    val parsers = chain(delegate)
    // A proxy may throw only exceptions that the interface declares. So this method returns a plan, which throws the
    // error when Spark runs the plan.
    def statement(sql: String): LogicalPlan =
      try SieveStatement.parsed(own, sql) catch { case e: SieveException => RefusedStatement(e) }

    def parse(method: Method, args: Array[AnyRef]): AnyRef = {
      val text = args.headOption.collect { case s: String if method.getName.startsWith("parsePlan") => s }
      if (text.exists(ownership.owns)) Parameters.plan(text.get, args.lift(1))(statement(text.get))
      else try {
        val block = text.filter(Scripts.isBlock).map(Scripts.handedOn(_, ownership.owns, Parameters.inText(_, args.lift(1))))
        val receiver = parsers.find(method.getDeclaringClass.isInstance).getOrElse(delegate)
        method.invoke(receiver, block.toSeq ++ args.drop(block.size): _*) match {
          case set @ SetCommand(Some((key, Some(_)))) => Settings.unknown(key).fold[LogicalPlan](set)(UnknownSetting(set, _))
          case plan: LogicalPlan =>
            if (changesTables(plan)) CatalogEvents.follow(own)
            plan
          case other => other
        }
      } catch {
        case e: InvocationTargetException => (e.getCause, text.filter(StatementOwnership.isNear)) match {
          case (refusal: ParseException, Some(near)) => statement(near) match {
            case ours: RefusedStatement if ours.failure.condition == "SIEVE_SYNTAX_ERROR" => ours
            case _ => throw refusal
          }
          case (other, _) => throw other
        }
      }
    }
    val handler = new InvocationHandler {
      override def invoke(proxy: AnyRef, method: Method, args: Array[AnyRef]): AnyRef =
        parse(method, Option(args).getOrElse(Array.empty))
    }
    val loader = delegate.getClass.getClassLoader
    Proxy.newProxyInstance(loader, interfaces(parsers, loader).toArray, handler).asInstanceOf[ParserInterface]
  }

  /** A parser, followed by the parsers in its chain of delegates. */
  private def chain(parser: ParserInterface): List[ParserInterface] = parser :: Try {
    val classes = Iterator.iterate[Class[_]](parser.getClass)(_.getSuperclass).takeWhile(_ != null)
    val fields = classes.flatMap(_.getDeclaredFields).filter(f => classOf[ParserInterface].isAssignableFrom(f.getType))
    fields.map { field =>
      field.setAccessible(true)
      field.get(parser)
    }.collectFirst { case next: ParserInterface if next ne parser => chain(next) }
  }.toOption.flatten.getOrElse(Nil)

  /**
   * The interfaces of all parsers. Iceberg's procedures look for an interface of Iceberg's parser in the session's
   * parser, and in the fields of the parser's class. A proxy has no such fields, so the proxy implements the interfaces
   * itself.
   */
  private def interfaces(parsers: Seq[ParserInterface], loader: ClassLoader): Seq[Class[_]] =
    (classOf[ParserInterface] +: parsers.flatMap(_.getClass.getInterfaces)).distinct.filter(own =>
      classOf[ParserInterface].isAssignableFrom(own) && Modifier.isPublic(own.getModifiers) &&
        Try(Class.forName(own.getName, false, loader)).toOption.contains(own))

  /**
   * True if the name of a plan's class suggests that the plan changes the catalog. Such a plan needs the catalog
   * anyway.
   */
  private def changesTables(plan: LogicalPlan): Boolean =
    changes.findFirstIn(plan.getClass.getSimpleName).isDefined
  private val changes =
    "^(Drop|Rename|Alter|Set[TNV]|Unset|Add|Replace|Create|Insert|Truncate|Recover|Load)".r
}
