package org.apache.spark.sql.sieve.ask

import java.io.ByteArrayOutputStream
import java.nio.{ByteBuffer, ByteOrder}
import java.util.Base64
import java.util.zip.DeflaterOutputStream
import scala.collection.mutable
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.sieve.formats.Locations
import org.apache.spark.sql.sieve.predicate.TopK

/**
 * For a top-k query, assigns a group to each listed file whose current state an index covers. If the query groups by
 * partition columns, it may need the first rows of each group. Otherwise, all files belong to one group.
 */
object TopKGroups {
  private val absent = -1
  private val hidden = -2
  private val twice = Int.MinValue

  /**
   * Returns the group number of each file, in the order of the file numbers, encoded for the front end. If queries do
   * not return all rows of a file in group g, the file gets the number -2 - g. The query may need some rows of a file
   * with this number, but the front end must not count the file's rows.
   */
  def of(
      listed: Seq[PartitionDirectory], locations: Locations, known: FileDictionary,
      relation: HadoopFsRelation, first: TopK): String = {
    val groups = Array.fill(known.files)(absent)
    val numbers = mutable.Map.empty[Seq[Any], Int]
    for (directory <- listed) {
      val group = numbers.getOrElseUpdate(values(directory.values, relation, first.groups), numbers.size)
      for {
        file <- directory.files
        location <- locations.of(directory.values, file)
        of <- location.shown.flatMap(known.find(FileDictionary.hash(location.path), _))
      } {
        val own = if (locations.hidesRows(file)) hidden - group else group
        // A file that the listing contains twice may have rows in two groups, so the file gets no group.
        groups(of.number) = if (groups(of.number) == absent) own else twice
      }
    }
    encoded(groups.map(group => if (group == twice) absent else group))
  }

  /**
   * The partition values that define a file's group. If Spark considers two different values equal, their files get two
   * groups. The scan then reads more files than necessary, but the result stays correct.
   */
  private def values(row: InternalRow, relation: HadoopFsRelation, of: Seq[Expression]): Seq[Any] =
    of.map { case column: Attribute =>
      val k = relation.partitionSchema.fieldIndex(column.name)
      row.get(k, relation.partitionSchema(k).dataType)
    }

  private def encoded(numbers: Array[Int]): String = {
    val bytes = ByteBuffer.allocate(numbers.length * Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN)
    bytes.asIntBuffer.put(numbers)
    val sink = new ByteArrayOutputStream
    val deflater = new DeflaterOutputStream(sink)
    deflater.write(bytes.array)
    deflater.close()
    Base64.getEncoder.encodeToString(sink.toByteArray)
  }
}
