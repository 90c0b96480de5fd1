package org.apache.spark.sql.sieve.formats

import org.apache.spark.sql.execution.datasources.{FileFormat, HadoopFsRelation}
import org.apache.spark.sql.sieve.base.Json
import org.apache.spark.sql.types._

/**
 * The columns of a Delta table by their names in the files. With column mapping, a name in the table can change,
 * and after DROP can be the name of another column. The name in the files does not change.
 */
object DeltaColumns {
  private val storedName = "delta.columnMapping.physicalName"
  /**
   * The keys of column metadata that readers use. Other metadata, for example of an identity column, changes with
   * each insert.
   */
  private val heeded = Seq(
    "delta.columnMapping.id", "delta.typeChanges", "__CHAR_VARCHAR_TYPE_STRING", "EXISTS_DEFAULT")

  /** Translates a column's path in a table, of any format, to the column's path in the files. */
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

  /** The columns in a relation's files. Delta's schema also has partition columns, which are not in the files. */
  def ofFiles(relation: HadoopFsRelation): StructType =
    if (!Delta.isFormat(relation.fileFormat)) relation.dataSchema
    else StructType(relation.dataSchema.filterNot(f => relation.partitionSchema.fieldNames.contains(f.name)))

  /**
   * All columns by their names in the files, with the metadata that a reader needs to find and read the columns.
   */
  def schema(format: FileFormat): StructType =
    inFiles(reference(format), isMapped(format)).asInstanceOf[StructType].asNullable

  /** The columns with the given names in the table, by their names in the files. */
  def schema(format: FileFormat, names: Seq[String]): StructType = {
    val (all, own) = (schema(format), reference(format))
    StructType(names.map(name => all(own.fieldIndex(name))))
  }

  /** The method by which readers find a column in a file: "none", "name" or "id". */
  def mapping(format: FileFormat): String = Hudi.call(Hudi.call(format, "columnMappingMode"), "name").toString

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
    Hudi.call(format, "referenceSchema").asInstanceOf[StructType]
}
