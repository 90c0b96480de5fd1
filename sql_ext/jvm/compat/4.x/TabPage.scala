package org.apache.spark.sql.sieve.observe

import jakarta.servlet.http.HttpServletRequest
import scala.xml.Node
import org.apache.spark.ui.{SparkUITab, UIUtils, WebUIPage}

/** The only page of a tab of Spark's web UI, in the usual frame: here for 4.x, with the servlets of `jakarta`. */
abstract class TabPage(tab: SparkUITab) extends WebUIPage("") {
  /** The content of the frame. */
  def content: Seq[Node]

  override def render(request: HttpServletRequest): Seq[Node] =
    UIUtils.headerSparkPage(request, tab.name, content, tab)
}
