package org.apache.spark.sql.sieve.observe

import scala.util.control.NonFatal
import scala.xml.{Node, Text, Unparsed}
import org.apache.spark.sql.sieve.ask.{FrontendClient, FrontendProcess}
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.sieve.catalog.Registry
import org.apache.spark.ui.{SparkUI, SparkUITab}

/**
 * The tab "Sieve" of Spark's web UI. The front end creates the page from the tables and scans of this driver. Showing
 * the page never starts a front end or a job, and never waits for a job. Spark's own ACLs determine which users may see
 * the page.
 */
class SieveTab(ui: SparkUI, session: Compat.Session) extends SparkUITab(ui, "sieve") {
  attachPage(new TabPage(this) {
    override def content: Seq[Node] =
      if (FrontendProcess.running.isEmpty) Text("Nothing to show yet: this driver has scanned no " +
        "table with an index, and has run no SIEVE statement.")
      else FrontendClient.page(session, Map(
        "scans" -> RecentScans.all,
        "tables" -> Registry.indexed(session.sparkContext.applicationId).map { case (key, registrations) =>
          Map("database" -> key.database, "table" -> key.table, "registrations" -> registrations)
        })).fold[Seq[Node]](Text("Sieve is busy: reload the page."))(html => Unparsed(html))
  })
}

object SieveTab {
  private var attached = Set.empty[SparkUI]

  /** Adds the tab to the web UI of an application. Does nothing if the tab already exists, or if there is no web UI. */
  def attach(session: Compat.Session): Unit = session.sparkContext.ui.foreach { ui =>
    val isNew = synchronized {
      val before = attached
      attached = Set(ui)
      !before(ui)
    }
    // The session must start even if the web UI does not accept the tab.
    if (isNew) try ui.attachTab(new SieveTab(ui, session)) catch { case NonFatal(_) | _: LinkageError => }
  }
}
