package org.apache.spark.sql.sieve.statements

import org.apache.spark.api.java.JavaSparkContext
import org.apache.spark.api.python.PythonAccumulatorV2
import org.apache.spark.sql.sieve.ask.{Counters, FrontendProcess, RequestQueue}
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.sieve.observe.{ExplainedScans, ScanRecord}
import org.apache.spark.util.AccumulatorV2

/** Replaces PySpark's accumulator, which sends updates to a server that Sieve's front end does not have. */
class SilentAccumulator extends PythonAccumulatorV2("127.0.0.1", 0, "") {
  override def merge(other: AccumulatorV2[Array[Byte], java.util.List[Array[Byte]]]): Unit = ()
}

/**
 * The entry point of a front end's gateway. The front end can call only the methods of this class and of the objects
 * that its methods return.
 */
class FrontendGateway(val defaultSession: Compat.Session, val requests: RequestQueue) {
  val context: JavaSparkContext = new JavaSparkContext(defaultSession.sparkContext)
  def accumulator(): PythonAccumulatorV2 = {
    val made = new SilentAccumulator
    context.sc.register(made)
    made
  }
  def ready(): Unit = FrontendProcess.attached(requests)

  // The methods `tables` and `explain` return objects, and Python calls the methods of these objects, too.
  def tables(): Tables.type = Tables
  def explain(): ExplainedScans.type = ExplainedScans
  def counters(): String = Counters.json
  def scans(): String = ScanRecord.json
}
