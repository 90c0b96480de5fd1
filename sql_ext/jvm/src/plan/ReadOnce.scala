package org.apache.spark.sql.sieve.plan

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics, UnaryNode}

/**
 * The source of a MERGE in a plan of EXPLAIN SIEVE. Because MERGE counts all rows of its source, Spark pushes no filter
 * into the source, and no job reads keys from it.
 */
case class ReadOnce(child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override def stats: Statistics = child.stats
  override protected def withNewChildInternal(newChild: LogicalPlan): ReadOnce = copy(child = newChild)
}
