package org.apache.spark.sql.sieve.formats

import java.util.{EnumSet, HashMap => JMap, Set => JSet}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.InputFileBlockHolder
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.plans.logical.Project
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder, SupportsPushDownRequiredColumns}
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.sieve.base.Compat
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String

/** A table that consists of exactly the given tasks of an Iceberg table. */
final class IcebergTaskTable(of: IcebergFiles, columns: StructType, tasks: Seq[AnyRef]) extends Table with SupportsRead {
  override def name: String = of.table.name
  override def schema: StructType = columns
  override def capabilities: JSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    new ScanBuilder with SupportsPushDownRequiredColumns {
      private var required = columns
      override def pruneColumns(schema: StructType): Unit = required = schema
      override def build(): Scan = IcebergScans.of(of, required, tasks)
    }
}

object IcebergTaskTable {
  private val file = "_file"

  /**
   * Returns all rows of files, including deleted rows. The columns have the names that indexes use. For each row, the
   * column `place` contains the position of the row's range among the ranges of all files.
   */
  def frame(
      reading: Compat.Session, of: IcebergFiles, files: Seq[FileStatusWithMetadata], place: String,
      cuts: Seq[Seq[Long]]): DataFrame = {
    val api = IcebergApi.of(of.table)
    val places = new JMap[UTF8String, FilePlaces]
    val before = cuts.scanLeft(0)(_ + _.size + 1)
    val tasks = files.zip(cuts).zipWithIndex.flatMap { case ((file, own), k) =>
      val task = IcebergFiles.taskOf(file)
      for ((location, _, _) <- api.dataFile(task))
        places.put(UTF8String.fromString(location), FilePlaces(before(k), own.toArray))
      if (own.isEmpty) Seq(api.withDeletedRows(task))
      else FileRanges.between(own, file.getLen).map(range => api.inRanges(api.withDeletedRows(task), Seq(range)))
    }
    val table = new IcebergTaskTable(of, of.types.add(file, StringType), tasks)
    val relation = DataSourceV2Relation.create(table, None, None)
    val columns = of.columns.leaves.map { case (path, id, _) => Alias(column(relation.output, path), id)() }
    val number = FilePlace(relation.output.find(_.name == file).get, reading.sparkContext.broadcast(places))
    Compat.frame(reading, Project(columns :+ Alias(number, place)(), relation))
  }

  private def column(output: Seq[Attribute], path: Seq[String]): Expression =
    path.tail.foldLeft[Expression](output.find(_.name == path.head).get) { (struct, name) =>
      val at = struct.dataType.asInstanceOf[StructType].fieldIndex(name)
      GetStructField(struct, at, Some(name))
    }
}

/** The position of a file's first range among the ranges of several files, and the offsets at which the file is cut. */
final case class FilePlaces(first: Int, cuts: Array[Long])

/**
 * Computes the position of a row's range among the ranges of several files. The rows of one file are adjacent.
 * Iceberg's reader tells Spark the start offset of the split that the reader reads.
 */
case class FilePlace(child: Expression, places: Broadcast[JMap[UTF8String, FilePlaces]])
    extends UnaryExpression with CodegenFallback {
  @transient private var last: UTF8String = _
  @transient private var found: FilePlaces = _
  override def dataType: DataType = IntegerType
  override def nullable: Boolean = false
  override def prettyName: String = "file_place"

  override def eval(input: org.apache.spark.sql.catalyst.InternalRow): Any = {
    val location = child.eval(input).asInstanceOf[UTF8String]
    if (location != last) {
      if (!places.value.containsKey(location)) throw new IllegalStateException(s"rows of another file: $location")
      found = places.value.get(location)
      last = location.clone()
    }
    if (found.cuts.isEmpty) found.first
    else {
      val start = InputFileBlockHolder.getStartOffset
      if (start < 0) throw new IllegalStateException(s"the split of a row is unknown: $location")
      found.first + found.cuts.count(_ <= start)
    }
  }
  override protected def withNewChildInternal(newChild: Expression): FilePlace = copy(child = newChild)
}
