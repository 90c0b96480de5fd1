package org.apache.spark.sql.sieve.base

import org.apache.spark.sql.types.StructType

/** The parser's methods that this release of Spark has and others lack. */
trait ParserMethods extends DelegatingParser {
  override def parseRoutineParam(text: String): StructType = delegate.parseRoutineParam(text)
}
