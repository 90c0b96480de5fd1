package org.apache.spark.sql.sieve.base

import scala.util.control.NonFatal

/**
 * Matches a failure of Sieve's own code after which the query can continue without the index. A class or a method that
 * this release of Spark or of a table format lacks is such a failure. A stack overflow is one, too, because Sieve visits
 * expressions recursively.
 */
object Failure {
  def unapply(e: Throwable): Boolean = e match {
    case NonFatal(_) | _: LinkageError | _: StackOverflowError => true
    case _ => false
  }
}
