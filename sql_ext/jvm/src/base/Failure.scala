package org.apache.spark.sql.sieve.base

import scala.util.control.NonFatal

/**
 * Matches a failure of Sieve's own code after which the query can continue without the index. For example, this release
 * of Spark or of a table format may lack a class or a method. A stack overflow also counts as such a failure, because
 * Sieve visits expressions recursively.
 */
object Failure {
  def unapply(e: Throwable): Boolean = e match {
    case NonFatal(_) | _: LinkageError | _: StackOverflowError => true
    case _ => false
  }
}
