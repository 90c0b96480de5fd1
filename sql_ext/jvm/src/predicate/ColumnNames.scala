package org.apache.spark.sql.sieve.predicate

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.sieve.base.Variants
import org.apache.spark.sql.types._

/**
 * Translates column names between the table and its files. A struct is represented by the paths of its fields. An array
 * of structs is also represented by the paths of the structs' fields, if the table format knows the fields' names in
 * the files.
 */
private class ColumnNames(columns: Seq[Attribute], stored: Seq[String] => Seq[String]) {
  private val paths: Seq[Seq[String]] = columns.flatMap(a => paths(Variants.whole(a).dataType, Seq(a.name)))
  private val byFile: Map[Seq[String], Seq[String]] = paths.map(path => stored(path) -> path).toMap

  private def paths(of: DataType, above: Seq[String]): Seq[Seq[String]] = of match {
    case struct: StructType => struct.fields.toSeq.flatMap(f => paths(f.dataType, above :+ f.name))
    case ArrayType(struct: StructType, _) =>
      paths(struct, above).filter(path => stored(path).startsWith(stored(above))) :+ above
    case _ => Seq(above)
  }

  /** True if the table has a column or field with this path. */
  def has(path: Seq[String]): Boolean = paths.contains(path)

  /**
   * Translates a column's name, as a user typed it, to the column's name in the files. The typed name may continue
   * after the column's name, for example with the key of a map.
   */
  def inFiles(name: Seq[String], equal: (String, String) => Boolean): Seq[String] = {
    def isStart(path: Seq[String]) = path.size <= name.size && path.zip(name).forall { case (a, b) => equal(a, b) }
    paths.find(isStart).fold(throw new NoSuchElementException(unknown(name)))(path => stored(path) ++ name.drop(path.size))
  }

  def inTable(name: Seq[String]): Seq[String] =
    name.indices.reverse.map(k => name.take(k + 1)).find(byFile.contains)
      .fold(throw new NoSuchElementException(unknown(name)))(path => byFile(path) ++ name.drop(path.size))

  private def unknown(name: Seq[String]): String =
    if (paths.exists(_.startsWith(name))) s"${name.mkString(".")} is a struct; name its fields"
    else s"the table has no column ${name.mkString(".")} in its files"
}
