package org.apache.spark.sql.sieve.ask

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.sieve.catalog.Entry

/** A scan of an indexed table: the properties on which a request to the front end depends. */
trait IndexedScan {
  def scan: LogicalRelation
  def relation: HadoopFsRelation
  def table: CatalogTable
  /** The indexes that the table had when the scan was planned. */
  def entry: Entry
  /** The session that runs the query; another session may have made the relation. */
  def executing: Compat.Session
  /** Whether a filter of the query compares an indexed column only together with a partition column. */
  def mixesPartitions: Boolean
  /** The prefetched request, which is returned only once, because a later listing may show a later state. */
  def takePrefetched(): Option[Prefetch]
}
