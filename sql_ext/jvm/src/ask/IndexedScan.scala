package org.apache.spark.sql.sieve.ask

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.sieve.catalog.Entry
import org.apache.spark.sql.sieve.predicate.IndexedExpressions

/** A scan of an indexed table, with the properties that determine the scan's request to the front end. */
trait IndexedScan {
  def scan: LogicalRelation
  def relation: HadoopFsRelation
  def table: CatalogTable
  /** The indexes that the table had when Spark planned the scan. */
  def entry: Entry
  /** The expressions on which the table has indexes, as the query's session computes them. */
  def expressions: IndexedExpressions
  /** The session that runs the query. Another session may have created the relation. */
  def executing: Compat.Session
  /**
   * True if the query has a filter with both a partition column and an indexed column. Spark does not pass a filter
   * with both kinds of columns to the scan.
   */
  def mixesPartitions: Boolean
  /**
   * Returns the prefetched request at the first call, and None at later calls. A later call belongs to a later listing,
   * which can show a newer state of the table.
   */
  def takePrefetched(): Option[Prefetch]
}
