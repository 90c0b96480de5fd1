package org.apache.spark.sql.sieve.tests {

  import java.lang.invoke.MethodHandles
  import java.util.{List => JList}
  import java.util.jar.JarFile
  import org.apache.spark.util.Utils

  /**
   * Jobs whose closures are not searched. Spark looks in each closure of each job for variables of a
   * Scala shell to null, and parses the classes RDD and SparkContext whole for it: a tenth of the CPU
   * time of a short query. No test types Scala, and a closure that cannot be serialized still fails
   * when Spark serializes its task.
   */
  object QuickClosures {
    /** Defines the classes below where Spark's own would be loaded; fails if one has been. */
    def install(): Unit = {
      val cleaner = if (org.apache.spark.SPARK_VERSION.startsWith("3.")) "ClosureCleaner" else "SparkClosureCleaner"
      val lookup = MethodHandles.privateLookupIn(Utils.getClass, MethodHandles.lookup())
      val jar = new JarFile(getClass.getProtectionDomain.getCodeSource.getLocation.getPath)
      try
        JList.of(cleaner, cleaner + "$").forEach { name =>
          val file = jar.getEntry("org/apache/spark/util/" + name + ".class")
          lookup.defineClass(jar.getInputStream(file).readAllBytes())
        }
      finally jar.close()
    }
  }
}

package org.apache.spark.util {

  /** Spark 4's. */
  object SparkClosureCleaner {
    def clean(closure: AnyRef, checkSerializable: Boolean = true, cleanTransitively: Boolean = true): Unit = ()
  }

  /** Spark 3.5's. */
  object ClosureCleaner {
    def clean(closure: AnyRef, checkSerializable: Boolean = true, cleanTransitively: Boolean = true): Unit = ()
  }
}
