package org.apache.spark.sql.sieve

import org.apache.spark.sql.SparkSessionExtensions

/** What `spark.sql.extensions` names: the list of all hooks that Sieve puts into a session. */
class SieveExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectParser((session, delegate) => StatementParser(session, delegate))
    extensions.injectPlannerStrategy(session => new SieveStrategy(session))
  }
}
