package org.apache.spark.sql.sieve.base

/** Adds no methods, because `DelegatingParser` contains all methods of a parser in Spark 3.5. */
trait ParserMethods extends DelegatingParser
