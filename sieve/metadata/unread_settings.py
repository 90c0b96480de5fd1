"""Settings of Parquet and ORC that change no value of a column.

`tests/spark/test_settings_change_columns.py` compares this list with the settings of Spark, Parquet
and ORC. For every setting outside the list, the test has a value that changes with the setting.
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
"""Prefixes of settings that only writers look up."""

_READERS: Final[Mapping[str, tuple[str, ...]]] = {
    "parquet": (
        # These settings choose pages and rows by a query's filter; a build has no filter.
        "parquet.filter.",
        # These settings define how the reader fetches bytes and metadata, or which metrics it
        # measures.
        *("parquet.benchmark.", "parquet.decrypt.off-heap.", "parquet.metadata.read.parallelism"),
        *("parquet.read.allocation.size", "parquet.split.files", "parquet.task.side.metadata"),
        # Only readers of min/max statistics use this setting, and Spark's scans read rows instead.
        "parquet.strings.signed-min-max.",
        # Spark requests each column with its type in the file.
        "parquet.strict.typing",
        # Spark's converters never report a record as unreadable.
        "parquet.read.bad.record.threshold",
        # Spark sets these settings for each scan, or uses its own class instead.
        *("parquet.read.schema", "parquet.read.support.class", "parquet.row."),
        # This setting describes a query's filter.
        "parquet.private.read.filter.predicate.human.readable",
        # Every value of a column without a type is NULL.
        "spark.sql.parquet.enablenulltypevectorizedreader",
    ),
    "orc": (
        # These settings apply a query's filter to rows; a build has no filter.
        *("orc.filter.use.selected", "orc.kryo.sarg", "orc.sarg."),
        # These settings define how the reader fetches bytes, and how many rows it reads at once.
        *("hive.exec.orc.max.disk.", "hive.exec.orc.zerocopy", "orc.max.disk.", "orc.min.disk."),
        *("orc.row.batch.size", "orc.use.zerocopy"),
        # Spark sets these settings for each scan.
        *("orc.include.columns", "orc.mapred.input.schema", "orc.schema.evolution.case.sensitive"),
        # ORC itself converts a file's types to the table's, both for batches and for rows.
        *("spark.sql.orc.enablevectorizedreader", "spark.sql.orc.enablenestedcolumnvectorized"),
    ),
}
"""Prefixes of settings that readers look up without any effect on a value."""

_PREFIXES: Final = {base: (*_WRITERS[base], *_READERS[base]) for base in _WRITERS}


def is_unread(files: str, key: str) -> bool:
    """Returns whether a setting, in lower case, changes no value in files of this format.

    Args:
        files: ``parquet`` or ``orc``, as Spark's own classes read it.
        key: the setting.
    """
    return key.startswith(_PREFIXES[files])
