package org.apache.spark.sql.sieve.observe

import javax.servlet.http.HttpServletRequest
import scala.xml.Node
import org.apache.spark.ui.{SparkUITab, UIUtils, WebUIPage}

/** The only page of a tab in Spark's web UI, with the usual header of the UI. Spark 3.5 uses servlets from `javax`. */
abstract class TabPage(tab: SparkUITab) extends WebUIPage("") {
  /** The content of the page below the header. */
  def content: Seq[Node]

  override def render(request: HttpServletRequest): Seq[Node] =
    UIUtils.headerSparkPage(request, tab.name, content, tab)
}
