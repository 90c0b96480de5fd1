package org.apache.spark.sql.sieve.formats

import org.apache.spark.sql.execution.datasources.{FileFormat, HadoopFsRelation}
import org.apache.spark.sql.sieve.base.Json
import org.apache.spark.sql.types._

/**
 * Finds the columns of a Delta table by their names in the files. With column mapping, a user can rename a column, and
 * another column can take a dropped column's name. A column's name in the files never changes.
 */
object DeltaColumns {
  import Reflection.getter

  private val storedName = "delta.columnMapping.physicalName"
  /**
   * The keys of the metadata entries that a column's readers use. Other entries can change with each insert, for
   * example the entries of an identity column.
   */
  private val heeded = Seq(
    "delta.columnMapping.id", "delta.typeChanges", "__CHAR_VARCHAR_TYPE_STRING", "EXISTS_DEFAULT")

  /**
   * Returns a function that translates a column's path in a table to the column's path in the files. For other formats,
   * both paths are equal.
   */
  def stored(relation: HadoopFsRelation): Seq[String] => Seq[String] =
    if (!Delta.isFormat(relation.fileFormat) || !isMapped(relation.fileFormat)) identity
    else {
      val all = reference(relation.fileFormat)
      stored(_, all)
    }

  private def stored(path: Seq[String], schema: StructType): Seq[String] =
    path.headOption.flatMap(name => schema.find(_.name == name)).fold(path) { field =>
      name(field) +: (field.dataType match {
        case struct: StructType => stored(path.tail, struct)
        case ArrayType(struct: StructType, _) => stored(path.tail, struct)
        case _ => path.tail
      })
    }

  /** The columns in a relation's files. Delta's schema also contains the partition columns, which the files lack. */
  def ofFiles(relation: HadoopFsRelation): StructType =
    if (!Delta.isFormat(relation.fileFormat)) relation.dataSchema
    else StructType(relation.dataSchema.filterNot(f => relation.partitionSchema.fieldNames.contains(f.name)))

  /** All columns, with their names in the files and the metadata that a reader needs to find and read the columns. */
  def schema(format: FileFormat): StructType =
    inFiles(reference(format), isMapped(format)).asInstanceOf[StructType].asNullable

  /** The columns that have the given names in the table. The returned columns have the names that the files use. */
  def schema(format: FileFormat, names: Seq[String]): StructType = {
    val (all, own) = (schema(format), reference(format))
    StructType(names.map(name => all(own.fieldIndex(name))))
  }

  /** The method by which readers find a column in a file: "none", "name" or "id". */
  def mapping(format: FileFormat): String = getter(getter(format, "columnMappingMode"), "name").toString

  private def inFiles(t: DataType, mapped: Boolean): DataType = t match {
    case struct: StructType => StructType(struct.fields.map(f => f.copy(
      name = if (mapped) name(f) else f.name, dataType = inFiles(f.dataType, mapped), metadata = only(f.metadata))))
    case ArrayType(element, nulls) => ArrayType(inFiles(element, mapped), nulls)
    case MapType(key, value, nulls) => MapType(inFiles(key, mapped), inFiles(value, mapped), nulls)
    case other => other
  }

  /** Returns only the metadata that readers use. Other metadata changes with the table's rows or with comments. */
  private def only(metadata: Metadata): Metadata = {
    val all = Json.read(metadata.json)
    Metadata.fromJson(Json.write(heeded.filter(all.has).map(key => key -> all.get(key)).toMap))
  }

  private def name(field: StructField): String =
    if (field.metadata.contains(storedName)) field.metadata.getString(storedName) else field.name
  private def isMapped(format: FileFormat): Boolean = mapping(format) != "none"
  private def reference(format: FileFormat): StructType =
    getter(format, "referenceSchema").asInstanceOf[StructType]
}
