"""Settings of Parquet and ORC that do not change the values that Spark reads from a column.

`tests/spark/test_settings_change_columns.py` compares these lists with all settings of Spark,
Parquet and ORC. For every other setting, the test shows a column whose values change with the
setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_WRITERS: Final[Mapping[str, tuple[str, ...]]] = {
    "parquet": (
        *("parquet.block.", "parquet.bloom.", "parquet.columnindex.", "parquet.compression"),
        *("parquet.dictionary.", "parquet.enable.", "parquet.example.schema", "parquet.memory."),
        *("parquet.page.", "parquet.size.statistics.", "parquet.statistics."),
        *("parquet.summary.metadata.", "parquet.validation", "parquet.writer.", "parquet.write."),
        *("parquet.row.attributes", "parquet.variant.shredding.attributes"),
        "spark.sql.parquet.variant.annotatelogicaltype.",
    ),
    "orc": (
        *("orc.base.delta.ratio", "orc.block.", "orc.bloom.filter.", "orc.buffer.size.enforce"),
        *("orc.column.encoding.", "orc.compress", "orc.create.index", "orc.default.bloom."),
        *("orc.dictionary.", "orc.encoding.", "orc.encrypt", "orc.mask", "orc.memory.pool"),
        *("orc.overwrite.", "orc.row.child.limit", "orc.row.index.", "orc.rows.between."),
        *("orc.stripe.", "orc.write.", "orc.mapred.map.output.", "orc.mapred.output."),
        *("hive.exec.orc.base.delta.ratio", "hive.exec.orc.block.", "hive.exec.orc.buffer."),
        *("hive.exec.orc.compress", "hive.exec.orc.default.", "hive.exec.orc.dictionary."),
        *("hive.exec.orc.encoding.", "hive.exec.orc.memory.", "hive.exec.orc.write."),
    ),
}
"""For each file format, prefixes of settings that only writers look up."""

_READERS: Final[Mapping[str, tuple[str, ...]]] = {
    "parquet": (
        # These settings affect how Parquet's reader skips pages and rows by a query's filter; a
        # build has no filter.
        "parquet.filter.",
        # These settings affect how Parquet's reader fetches bytes and metadata, or which metrics it
        # measures.
        *("parquet.benchmark.", "parquet.decrypt.off-heap.", "parquet.metadata.read.parallelism"),
        *("parquet.read.allocation.size", "parquet.split.files", "parquet.task.side.metadata"),
        # Only code that reads min/max statistics uses this setting; Spark's scans read rows.
        "parquet.strings.signed-min-max.",
        # Spark requests each column with the type that the column has in the file.
        "parquet.strict.typing",
        # With this setting, a reader tolerates a number of unreadable records, but Spark's record
        # converters never report a record as unreadable.
        "parquet.read.bad.record.threshold",
        # For each scan, Spark overwrites these settings, or does not use the class that they name.
        *("parquet.read.schema", "parquet.read.support.class", "parquet.row."),
        # This setting is a text that describes a query's filter.
        "parquet.private.read.filter.predicate.human.readable",
        # This setting affects only columns without a type, in which every value is NULL.
        "spark.sql.parquet.enablenulltypevectorizedreader",
    ),
    "orc": (
        # These settings affect how ORC's reader applies a query's filter to rows; a build has no
        # filter.
        *("orc.filter.use.selected", "orc.kryo.sarg", "orc.sarg."),
        # These settings affect how ORC's reader fetches bytes, and how many rows it reads at once.
        *("hive.exec.orc.max.disk.", "hive.exec.orc.zerocopy", "orc.max.disk.", "orc.min.disk."),
        *("orc.row.batch.size", "orc.use.zerocopy"),
        # Spark overwrites these settings for each scan.
        *("orc.include.columns", "orc.mapred.input.schema", "orc.schema.evolution.case.sensitive"),
        # These settings choose whether to read batches or rows; in both cases, ORC itself converts
        # a file's types to the table's types.
        *("spark.sql.orc.enablevectorizedreader", "spark.sql.orc.enablenestedcolumnvectorized"),
    ),
}
"""For each file format, prefixes of settings that readers look up, but that change no value."""

_PREFIXES: Final = {base: (*_WRITERS[base], *_READERS[base]) for base in _WRITERS}


def is_unread(files: str, key: str) -> bool:
    """Returns whether a setting certainly does not affect the values read from files of a format.

    Args:
        files: the file format, ``parquet`` or ``orc``, as read by Spark's own classes.
        key: the name of the setting, in lower case.
    """
    return key.startswith(_PREFIXES[files])
