package org.apache.spark.sql.sieve.formats

/** An Iceberg table for statements: its current snapshot. */
final class IcebergTable(files: ListedFiles) extends FormatTable(files) {
  private def own: IcebergFiles = relation.location.asInstanceOf[IcebergFiles]

  /** The commit time of the current snapshot, ms since the epoch; negative for a table without a snapshot. */
  override def instant: Long = Iceberg.current(own.iceberg).fold(-1L)(Iceberg.committed)
}
