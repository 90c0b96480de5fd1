package org.apache.spark.sql.sieve.observe

/** Formats lines as a table of text. In each line, tabs separate the cells. The first line is the header. */
object TextTable {
  private val gap = 2

  /**
   * Returns the lines in aligned columns. If a line is too long, its last column is wrapped. If the wrapped column
   * would be too narrow, each row becomes a list of column names and values.
   */
  def shown(lines: Seq[String], width: Int): String = {
    val rows = lines.map(cells)
    val known = widths(lines)
    val before = known.dropRight(1).map(_ + gap).sum
    // The lines stay unchanged if a cell contains a tab, or if the table has a single column, for example a plan.
    if (known.size < 2 || rows.exists(_.size != known.size)) lines.mkString("\n")
    else if (before + known.last <= width) aligned(lines, known)
    else if (before <= width / 2) rows.map(hanging(_, known, width - before)).mkString("\n")
    else tall(rows, width)
  }

  /** The width of the widest cell in each column. */
  def widths(lines: Seq[String]): Seq[Int] =
    lines.map(cells).foldLeft(Seq.empty[Int])((most, row) => most.zipAll(row.map(length), 0, 0).map {
      case (one, other) => one.max(other)
    })

  /** Returns the lines with columns of these widths. If `widths` is empty, returns the lines unchanged. */
  def aligned(lines: Seq[String], widths: Seq[Int]): String =
    if (widths.isEmpty) lines.mkString("\n") else lines.map(line => joined(cells(line), widths)).mkString("\n")

  private def hanging(row: Seq[String], widths: Seq[Int], room: Int): String = {
    val first +: others = wrapped(row.last, room)
    val margin = " " * widths.dropRight(1).map(_ + gap).sum
    (joined(row.dropRight(1) :+ first, widths) +: others.map(margin + _)).mkString("\n")
  }

  /** Returns each row as a list of column names and values. */
  private def tall(rows: Seq[Seq[String]], width: Int): String = {
    val name = rows.head.map(length).max
    val names = rows.head.map(cell => cell + " " * (name - length(cell) + gap))
    rows.tail.zipWithIndex.map { case (row, number) =>
      val values = names.zip(row).map { case (before, value) =>
        wrapped(value, (width - name - gap).max(20)).mkString(before, "\n" + " " * (name + gap), "")
      }
      (s"row ${number + 1}" +: values).mkString("\n")
    }.mkString("\n\n")
  }

  private def joined(row: Seq[String], widths: Seq[Int]): String =
    row.zipWithIndex.map { case (cell, at) =>
      if (at == row.size - 1) cell else cell + " " * (widths.lift(at).getOrElse(0) - length(cell) + gap)
    }.mkString

  /**
   * Splits a text into lines of whole words. A word that is longer than a line, such as a path, gets a line of its own.
   */
  private def wrapped(text: String, room: Int): Seq[String] =
    text.split(" ", -1).foldLeft(List.empty[String]) {
      case (line :: above, word) if length(line) + 1 + length(word) <= room => s"$line $word" :: above
      case (above, word) => word :: above
    }.reverse

  private def cells(line: String): Seq[String] = line.split("\t", -1).toSeq

  private def length(cell: String): Int = cell.codePointCount(0, cell.length)
}
