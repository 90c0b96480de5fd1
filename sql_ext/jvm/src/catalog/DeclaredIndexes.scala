package org.apache.spark.sql.sieve.catalog

import java.util.Locale
import scala.util.Try
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.CreateTableLikeCommand
import org.apache.spark.sql.sieve.base.{Compat, TableProperties}

/** The properties in which a table declares its indexes. */
object DeclaredIndexes {
  val keys: Set[String] = Set("sieve.columns", "sieve.options")

  /**
   * The properties that declare a table's indexes. The result also contains unknown properties whose names begin with
   * `sieve.`, because the front end reports that unknown properties have no effect.
   */
  def by(table: CatalogTable): Map[String, String] = table.properties.filter { case (key, _) =>
    val name = key.toLowerCase(Locale.ROOT)
    name.startsWith("sieve.") && !name.startsWith(TableProperties.registrations)
  }.toMap
}

/**
 * Makes CREATE TABLE LIKE declare the indexes of the source table, because Spark copies no properties to the new table.
 * A statement that declares indexes itself stays unchanged.
 */
class DeclareLikeSource(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case like: CreateTableLikeCommand if !DeclaredIndexes.keys.exists(like.properties.contains) =>
      val catalog = session.asInstanceOf[Compat.Session].sessionState.catalog
      // If the source cannot be read, the command itself reports the error.
      val source = Try(catalog.getTempViewOrPermanentTableMetadata(like.sourceTable)).toOption
      val declared = source.fold(Map.empty[String, String])(_.properties.toMap)
        .filter { case (key, _) => DeclaredIndexes.keys(key) }
      if (declared.isEmpty) like else like.copy(properties = like.properties ++ declared)
    case other => other
  }
}
