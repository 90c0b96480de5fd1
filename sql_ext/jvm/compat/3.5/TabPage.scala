package org.apache.spark.sql.sieve.observe

import javax.servlet.http.HttpServletRequest
import scala.xml.Node
import org.apache.spark.ui.{SparkUITab, UIUtils, WebUIPage}

/** The only page of a tab of Spark's web UI, in the frame that all of them have: here of 3.5, whose servlets are those of `javax`. */
abstract class TabPage(tab: SparkUITab) extends WebUIPage("") {
  /** What stands in the frame; the argument gives the parameters of the address. */
  def content(parameter: String => Option[String]): Seq[Node]

  override def render(request: HttpServletRequest): Seq[Node] =
    UIUtils.headerSparkPage(request, tab.name, content(name => Option(request.getParameter(name))), tab)
}
