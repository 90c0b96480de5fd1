package org.apache.spark.sql.sieve.formats

import org.apache.spark.sql.types._

/**
 * The columns of an Iceberg table by their ids. A rename or a new order keeps the id of a column; a column that
 * is dropped and added again gets another id. An index knows a column as `field 7`.
 *
 * @param schema    Iceberg's schema
 * @param types     the same schema with Spark's types
 * @param constants the ids of columns that have no values in an index
 */
final class IcebergColumns(schema: AnyRef, types: StructType, constants: Set[Any]) {
  private val top = IcebergApi.call(schema, "asStruct")

  /** The columns and fields of structs that have no fields themselves: path, id and type. */
  lazy val leaves: Seq[(Seq[String], String, DataType)] = leaves(types, Nil)

  private def leaves(of: StructType, above: Seq[String]): Seq[(Seq[String], String, DataType)] =
    of.fields.toSeq.flatMap { f =>
      val path = above :+ f.name
      f.dataType match {
        case struct: StructType => leaves(struct, path)
        case other => id(path).map((path, _, other))
      }
    }

  /** A column's path in the files: its id. Metadata columns have none. */
  def stored(path: Seq[String]): Seq[String] = id(path).fold(path)(Seq(_))

  /** The names of the columns that have no values in an index. */
  def constantNames: Seq[String] = types.fieldNames.toSeq.filter(name => number(Seq(name)).exists(constants))

  private def id(path: Seq[String]): Option[String] =
    number(path).filterNot(constants).map(number => s"field $number")

  private def number(path: Seq[String]): Option[Any] = {
    val first: Option[AnyRef] = Some(top)
    path.foldLeft((first, Option.empty[AnyRef])) { case ((struct, _), name) =>
      val field = struct.flatMap(s => Option(IcebergApi.call(s, "field", name)))
      (field.map(IcebergApi.call(_, "type")).filter(IcebergApi.call(_, "isStructType") == true), field)
    }._2.map(IcebergApi.call(_, "fieldId"))
  }

  /** The columns by which readers agree or differ. */
  def byId: StructType = StructType(leaves.map { case (_, id, kind) => StructField(id, kind) })
}
