package org.apache.spark.sql.sieve

import scala.collection.mutable
import scala.util.Try
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.sieve.ask.FrontendProcess
import org.apache.spark.sql.sieve.base.{Compat, Settings}
import org.apache.spark.sql.sieve.catalog.DeclareLikeSource
import org.apache.spark.sql.sieve.observe.{Audit, CatalogEvents, Progress, RecentScans, ShellOutput, SieveTab}
import org.apache.spark.sql.sieve.plan.{InstallJoinPruning, SieveFileIndex, SieveStrategy, StartFrontend}
import org.apache.spark.sql.sieve.statements.{BindStatement, CreateIndexHint, FrontendGateway, FunctionRows, SieveKey}
import org.apache.spark.sql.sieve.statements.{StatementParser, TableFunction}

/** Installs all hooks of Sieve into a session. The setting `spark.sql.extensions` names this class. */
class SieveExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    FrontendProcess.entryPoint = new FrontendGateway(_, _)
    SieveFileIndex.observers = Seq(RecentScans, Audit)
    ShellOutput.install()
    extensions.injectParser { (session, delegate) =>
      Progress.watch(session.sparkContext)
      Settings.register(session.sparkContext)
      CatalogEvents.attach(session.asInstanceOf[Compat.Session])
      SieveTab.attach(session.asInstanceOf[Compat.Session])
      new StatementParser(session, delegate)
    }
    // Spark calls the last injected parser first, and plans a scan with the first strategy that accepts the scan. The
    // parser of another extension may accept a statement of Sieve, and Delta's strategy accepts every scan of files.
    // Sieve's parser and strategy accept only Sieve's own statements and scans. So this code makes Spark call Sieve's
    // parser and strategy first, in whatever order the user lists the extensions.
    reorder(extensions, "parserBuilders")(builders => new LastStaysLast(builders.toList))
    extensions.injectPlannerStrategy(session => new SieveStrategy(session))
    reorder(extensions, "plannerStrategyBuilders") { builders =>
      builders.insert(0, builders.remove(builders.size - 1))
      builders
    }
    extensions.injectResolutionRule(session => new FunctionRows(session))
    extensions.injectResolutionRule(session => new BindStatement(session.asInstanceOf[Compat.Session]))
    extensions.injectPostHocResolutionRule(_ => CreateIndexHint)
    extensions.injectPostHocResolutionRule(session => new DeclareLikeSource(session))
    extensions.injectPostHocResolutionRule(session => new InstallJoinPruning(session.asInstanceOf[Compat.Session]))
    extensions.injectPostHocResolutionRule(session => new StartFrontend(session.asInstanceOf[Compat.Session]))
    extensions.injectFunction((FunctionIdentifier("sieve_key"), SieveKey.info, SieveKey.build(_)))
    TableFunction.all.foreach { function =>
      extensions.injectTableFunction((FunctionIdentifier(function.name), function.info, function.call(_)))
    }
  }

  /**
   * Changes the order of the builders with which Spark creates parsers or strategies. Spark has no public method to
   * change this order, so this code sets a private field. In a release of Spark without this field, the order stays
   * unchanged.
   */
  private def reorder(extensions: SparkSessionExtensions, name: String)(
      change: mutable.Buffer[AnyRef] => mutable.Buffer[AnyRef]): Unit = Try {
    val field = classOf[SparkSessionExtensions].getDeclaredField(name)
    field.setAccessible(true)
    field.set(extensions, change(field.get(extensions).asInstanceOf[mutable.Buffer[AnyRef]]))
  }
}

/**
 * A list of builders, which Spark calls in order. The last builder of the initial list stays last, even if other
 * builders are added.
 */
private class LastStaysLast(sofar: Seq[AnyRef]) extends mutable.ArrayBuffer[AnyRef] {
  private val own = sofar.last
  this ++= sofar

  override def foldLeft[B](zero: B)(op: (B, AnyRef) => B): B = {
    val (one, others) = toList.partition(_ eq own)
    (others ::: one).foldLeft(zero)(op)
  }
}
