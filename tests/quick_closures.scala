package org.apache.spark.util

// In place of Spark's own, on the class path of test drivers. Spark looks for variables of a Scala
// shell to null in each closure of each job: it parses the classes RDD and SparkContext whole, for
// a tenth of the CPU time of a short query. No test types Scala, and a closure that cannot be
// serialized still fails when Spark serializes its task.

/** Spark 4's. */
object SparkClosureCleaner {
  def clean(closure: AnyRef, checkSerializable: Boolean = true, cleanTransitively: Boolean = true): Unit = ()
}

/** Spark 3.5's. */
object ClosureCleaner {
  def clean(closure: AnyRef, checkSerializable: Boolean = true, cleanTransitively: Boolean = true): Unit = ()
}
