package org.apache.spark.sql.sieve.formats

import org.apache.spark.sql.types._

/**
 * Finds the columns of an Iceberg table by their ids. A column that is renamed or moved keeps its id. A column that is
 * dropped and added again gets another id. An index names a column by its id, for example `field 7`.
 *
 * @param schema    Iceberg's schema
 * @param types     the same schema with Spark's types
 * @param constants the ids of columns whose values an index does not contain
 */
final class IcebergColumns(schema: AnyRef, types: StructType, constants: Set[Any]) {
  private val top = Reflection.call(schema, "asStruct")

  /** The path, the id and the type of each column, and of each field of a struct. Structs themselves are left out. */
  lazy val leaves: Seq[(Seq[String], String, DataType)] = leaves(types, Nil)

  private def leaves(of: StructType, above: Seq[String]): Seq[(Seq[String], String, DataType)] =
    of.fields.toSeq.flatMap { f =>
      val path = above :+ f.name
      f.dataType match {
        case struct: StructType => leaves(struct, path)
        case other => id(path).map((path, _, other))
      }
    }

  /**
   * The name that indexes use for a column. The name contains the column's id. For a metadata column and for a column
   * in `constants`, this method returns the column's path.
   */
  def stored(path: Seq[String]): Seq[String] = id(path).fold(path)(Seq(_))

  /** The names of the columns whose values an index does not contain. */
  def constantNames: Seq[String] = types.fieldNames.toSeq.filter(name => number(Seq(name)).exists(constants))

  private def id(path: Seq[String]): Option[String] =
    number(path).filterNot(constants).map(number => s"field $number")

  private def number(path: Seq[String]): Option[Any] = {
    val first: Option[AnyRef] = Some(top)
    path.foldLeft((first, Option.empty[AnyRef])) { case ((struct, _), name) =>
      val field = struct.flatMap(s => Option(Reflection.call(s, "field", name)))
      (field.map(Reflection.call(_, "type")).filter(Reflection.call(_, "isStructType") == true), field)
    }._2.map(Reflection.call(_, "fieldId"))
  }

  /** The ids and types of all columns. Readers with the same ids and types return the same values. */
  def byId: StructType = StructType(leaves.map { case (_, id, kind) => StructField(id, kind) })
}
