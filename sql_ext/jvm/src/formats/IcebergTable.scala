package org.apache.spark.sql.sieve.formats

/** An Iceberg table for SIEVE statements, which read the table's current snapshot. */
final class IcebergTable(files: ListedFiles) extends FormatTable(files) {
  private def own: IcebergFiles = relation.location.asInstanceOf[IcebergFiles]

  /** The commit time of the current snapshot, in ms since the epoch. Negative for a table without a snapshot. */
  override def instant: Long = Iceberg.current(own.iceberg).fold(-1L)(Iceberg.committed)
}
