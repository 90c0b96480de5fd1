package org.apache.spark.sql.sieve.base

import scala.jdk.CollectionConverters._
import com.fasterxml.jackson.databind.JsonNode

/**
 * The shim's lists, limits and defaults, from `policy.json` in the jar, which gives the reason for
 * each.
 */
object Policy {
  private val root = Json.resource("policy.json")

  /** The node at a path such as `/limits/x`; a missing node is an error, never an empty list. */
  def at(path: String): JsonNode = {
    val node = root.at(path)
    require(!node.isMissingNode, s"policy.json has no $path")
    node
  }

  def texts(path: String): Seq[String] = at(path).elements.asScala.map(_.asText).toList

  def limit(name: String): Long = at(s"/limits/$name/value").asLong
}
