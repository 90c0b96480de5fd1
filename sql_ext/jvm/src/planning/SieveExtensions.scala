package org.apache.spark.sql.sieve

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.FunctionIdentifier

/** What `spark.sql.extensions` names: the list of all hooks that Sieve puts into a session. */
class SieveExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectParser { (session, delegate) =>
      Settings.register(session.sparkContext)
      Events.attach(session.asInstanceOf[Compat.Session])
      StatementParser(session, delegate)
    }
    lastParser(extensions)
    extensions.injectPlannerStrategy(session => new SieveStrategy(session))
    lastStrategyFirst(extensions)
    extensions.injectResolutionRule(session => new FunctionRows(session))
    extensions.injectPostHocResolutionRule(session => new DeclareLikeSource(session))
    extensions.injectFunction(
      (FunctionIdentifier("sieve_key"), SieveKey.info, SieveKey.build(_)))
    Functions.all.foreach { function =>
      extensions.injectTableFunction(
        (FunctionIdentifier(function.name), function.info, function.call(_)))
    }
  }

  /**
   * The first strategy that takes a scan plans it, and Delta's takes every scan of files. Ours takes
   * those of indexed tables alone, so it has to be asked first, in whichever order both are named;
   * there is no public way to say so. A Spark that keeps its strategies elsewhere asks in turn.
   */
  private def lastStrategyFirst(extensions: SparkSessionExtensions): Unit = Try {
    val field = classOf[SparkSessionExtensions].getDeclaredField("plannerStrategyBuilders")
    field.setAccessible(true)
    val builders = field.get(extensions).asInstanceOf[mutable.Buffer[AnyRef]]
    builders.insert(0, builders.remove(builders.size - 1))
  }

  /**
   * The parser that was injected last is asked first, and parsers of others take forms of statements
   * that are ours as well. Ours takes those alone, so it has to be asked first, in whichever order
   * extensions are named; there is no public way to say so. A Spark that keeps its parsers elsewhere
   * asks in turn.
   */
  private def lastParser(extensions: SparkSessionExtensions): Unit = Try {
    val field = classOf[SparkSessionExtensions].getDeclaredField("parserBuilders")
    field.setAccessible(true)
    val builders = field.get(extensions).asInstanceOf[mutable.Buffer[AnyRef]]
    field.set(extensions, new OneLast(builders.toList))
  }
}

/** Parts of a session that Spark folds over in their order, but for the last one so far: it stays last. */
private class OneLast(sofar: Seq[AnyRef]) extends mutable.ArrayBuffer[AnyRef] {
  private val own = sofar.last
  this ++= sofar

  override def foldLeft[B](zero: B)(op: (B, AnyRef) => B): B = {
    val (one, others) = toList.partition(_ eq own)
    (others ::: one).foldLeft(zero)(op)
  }
}
