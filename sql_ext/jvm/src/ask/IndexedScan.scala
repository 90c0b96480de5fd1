package org.apache.spark.sql.sieve.ask

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.sieve.catalog.Entry

/** The properties of a scan of an indexed table that determine its request to the front end. */
trait IndexedScan {
  def scan: LogicalRelation
  def relation: HadoopFsRelation
  def table: CatalogTable
  /** The indexes that the table had when the scan was planned. */
  def entry: Entry
  /** The expressions that have an index, as the query's session computes them. */
  def expressions: IndexedExpressions
  /** The session that runs the query. Another session can have created the relation. */
  def executing: Compat.Session
  /** True if a filter of the query has an indexed column only in comparisons that also have a partition column. */
  def mixesPartitions: Boolean
  /**
   * Returns the prefetched request. The request is returned only once, because a later listing can show a later state
   * of the table.
   */
  def takePrefetched(): Option[Prefetch]
}
