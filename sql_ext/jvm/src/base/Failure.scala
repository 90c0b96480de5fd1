package org.apache.spark.sql.sieve.base

import scala.util.control.NonFatal

/**
 * Matches the exceptions of Sieve's own code that must not fail a query. The query then continues without the index.
 * For example, this release of Spark or of a table format may lack a class or a method. A stack overflow also matches,
 * because Sieve visits expressions recursively.
 */
object Failure {
  def unapply(e: Throwable): Boolean = e match {
    case NonFatal(_) | _: LinkageError | _: StackOverflowError => true
    case _ => false
  }
}
