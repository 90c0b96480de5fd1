package org.apache.spark.sql.sieve.base

/** The parser's methods that this release of Spark has and others lack. */
trait ParserMethods extends DelegatingParser
