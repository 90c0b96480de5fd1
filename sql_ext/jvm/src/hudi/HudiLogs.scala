package org.apache.spark.sql.sieve

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.execution.datasources.HadoopFsRelation

/** Log files of Hudi tables: what they hold, as the headers of their blocks tell. */
object HudiLogs {
  import Hudi.call

  // Deletes are not news: they hide rows, and nothing but a reading of all would show how many.
  private val rows = Set("AVRO_DATA_BLOCK", "PARQUET_DATA_BLOCK", "HFILE_DATA_BLOCK")

  // A file is closed after some headers.
  private val buffer = 64 << 10

  // A record that lacks the columns that a MERGE did not assign; blocks that stand for earlier ones.
  private val others = Set("IS_PARTIAL", "COMPACTED_BLOCK_TIMES")

  /** Has a reader give each record that was ever logged, whichever of its key is shown. */
  val unmerged: Map[String, String] = Map("hoodie.datasource.merge.type" -> "skip_merge")

  /** Whether a log file holds nothing but whole records. */
  def ofWholeRecords(relation: HadoopFsRelation, log: AnyRef): Boolean = {
    val reader = open(relation, log)
    try blocks(reader).forall { block =>
      val header = call(block, "getLogBlockHeader").asInstanceOf[java.util.Map[AnyRef, String]]
      rows(call(block, "getBlockType").toString) && !header.keySet.asScala.map(_.toString).exists(others)
    } finally reader.close()
  }

  private def open(relation: HadoopFsRelation, log: AnyRef): java.io.Closeable =
    log.getClass.getClassLoader.loadClass("org.apache.hudi.common.table.log.HoodieLogFileReader")
      .getConstructors.find(_.getParameterCount == 4).get
      // What its records look like is not asked.
      .newInstance(call(Hudi.client(relation), "getStorage"), log, null, Int.box(buffer))
      .asInstanceOf[java.io.Closeable]

  private def blocks(reader: AnyRef): Iterator[AnyRef] =
    reader.asInstanceOf[java.util.Iterator[AnyRef]].asScala
}
