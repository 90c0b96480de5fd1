package org.apache.spark.sql.sieve.base

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.module.scala.DefaultScalaModule

/**
 * Reads and writes JSON: requests to the front end, the front end's answers, and resources in the jar. `write` converts
 * Scala's maps, sequences and options to JSON.
 */
object Json {
  private val mapper = new ObjectMapper().registerModule(DefaultScalaModule)

  def read(text: String): JsonNode = mapper.readTree(text)
  def resource(name: String): JsonNode = mapper.readTree(getClass.getResourceAsStream(s"/org/apache/spark/sql/sieve/$name"))
  def write(value: Any): String = mapper.writeValueAsString(value)
}
