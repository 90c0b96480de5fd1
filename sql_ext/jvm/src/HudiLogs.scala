package org.apache.spark.sql.sieve

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.execution.datasources.HadoopFsRelation

/** Log files of Hudi tables: what they hold, as the headers of their blocks tell. */
object HudiLogs {
  import Hudi.call

  private val rows = Set("AVRO_DATA_BLOCK", "PARQUET_DATA_BLOCK", "HFILE_DATA_BLOCK", "DELETE_BLOCK")

  // A record that lacks the columns that a MERGE did not assign; blocks that stand for earlier ones.
  private val others = Set("IS_PARTIAL", "COMPACTED_BLOCK_TIMES")

  /** Whether a log file holds nothing but whole records and keys of deleted ones. */
  def ofWholeRecords(relation: HadoopFsRelation, log: AnyRef): Boolean = {
    val reader = open(relation, log)
    try blocks(reader).forall { block =>
      val header = call(block, "getLogBlockHeader").asInstanceOf[java.util.Map[AnyRef, String]]
      rows(call(block, "getBlockType").toString) && !header.keySet.asScala.map(_.toString).exists(others)
    } finally reader.close()
  }

  private def open(relation: HadoopFsRelation, log: AnyRef): java.io.Closeable =
    log.getClass.getClassLoader.loadClass("org.apache.hudi.common.table.log.HoodieLogFormat")
      .getMethods.find(m => m.getName == "newReader" && m.getParameterCount == 3).get
      // What its records look like is not asked.
      .invoke(null, call(Hudi.client(relation), "getStorage"), log, null)
      .asInstanceOf[java.io.Closeable]

  private def blocks(reader: AnyRef): Iterator[AnyRef] =
    reader.asInstanceOf[java.util.Iterator[AnyRef]].asScala
}
