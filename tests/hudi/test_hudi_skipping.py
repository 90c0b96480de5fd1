"""Hudi's own ways to skip slices work together with the index, which skips more slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import tables
from spark_session import Answer, Lab

pytestmark = pytest.mark.hudi


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which Hudi skips slices: a metadata partition, table properties, and a condition."""

    part: str
    properties: dict[str, str]
    condition: str


_STATISTICS = "hoodie__metadata__index__{}__stats__enable"
_KEYS = {
    "hoodie__metadata__record__index__enable": "true",
    "hoodie__metadata__record__index__min__filegroup__count": "1",
    "hoodie__metadata__record__index__max__filegroup__count": "1",
}
# With each condition, Hudi reads only the two slices with the keys 100 to 299.
WAYS = [
    Way(
        "column_stats",
        {_STATISTICS.format("column"): "true", _STATISTICS.format("partition"): "false"},
        "id BETWEEN 150 AND 260",
    ),
    Way(
        "partition_stats",
        {_STATISTICS.format("column"): "true", _STATISTICS.format("partition"): "true"},
        "id BETWEEN 150 AND 260",
    ),
    Way("record_index", _KEYS, "id IN (150, 250)"),
    Way("secondary_index_by_word", _KEYS, "word IN ('w150', 'w250')"),
]
# The second slice contains the amount 850, and the fourth contains 650. No slice contains 849 or
# 851. Each entry has four numbers. Three numbers count the slices read: with Hudi's skipping, with
# the index, and with both. The last number of an entry counts the rows.
QUESTIONS = {
    "amount IN (850, 650)": (2, 2, 1, 1),
    "amount BETWEEN 849 AND 851": (2, 1, 1, 1),
    "amount = 650": (2, 1, 0, 0),
}


def answers(lab: Lab, queries: Sequence[str], *, hudi: bool, sieve: bool) -> list[Answer]:
    """The results of the queries, with Hudi's skipping on or off, and with Sieve on or off."""
    # Until REFRESH TABLE, a session uses the Hudi settings of its first read of the table.
    lab.sql("REFRESH TABLE t")
    with (
        lab.setting("hoodie.enable.data.skipping", str(hudi).lower()),
        lab.setting("spark.sieve.enabled", str(sieve).lower()),
        lab.setting("spark.sieve.strict", "true"),
    ):
        return [lab.run(query) for query in queries]


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.part)
def test_slices_that_hudi_or_the_index_skips_are_not_read(lab: Lab, way: Way, kind: str) -> None:
    """If Hudi or the index skips a slice, point and range queries do not read the slice.

    Queries return the same rows, whether Hudi, the index, or both skip slices.
    """
    with lab.database("hudi_skipping"):
        tables.create(lab, kind, parts=True, hoodie__metadata__enable="true", **way.properties)
        tables.fill(lab, 0, 400)
        if way.part == "secondary_index_by_word":
            with lab.setting("hoodie.write.lock.provider", tables.LOCK):
                lab.sql("CREATE INDEX by_word ON t (word)")
        lab.sql("UPDATE t SET ts = 2 WHERE id IN (150, 350)")
        lab.sql("CREATE SIEVE INDEX ON t (amount)")
        assert (tables.folder(lab) / ".hoodie" / "metadata" / way.part).is_dir()

        queries = [f"SELECT * FROM t WHERE {way.condition} AND {own}" for own in QUESTIONS]
        neither = answers(lab, queries, hudi=False, sieve=False)
        ways = [
            answers(lab, queries, hudi=True, sieve=False),
            answers(lab, queries, hudi=False, sieve=True),
            answers(lab, queries, hudi=True, sieve=True),
        ]
        for query, expected, plain, *found in zip(
            queries, QUESTIONS.values(), neither, *ways, strict=True
        ):
            assert plain.files == 4
            assert all(one.rows == plain.rows for one in found), query
            assert (*(one.files for one in found), plain.rows.total()) == expected, query


def test_with_and_without_the_metadata_table(lab: Lab) -> None:
    """An index works with and without the metadata table, because slices have the same names."""
    with lab.database("hudi_metadata"):
        tables.create(lab, "mor", parts=True, hoodie__metadata__enable="")
        with lab.setting("hoodie.metadata.enable", "true"):
            tables.fill(lab, 0, 400)
            lab.sql("UPDATE t SET amount = 5000 WHERE id = 250")
            lab.sql("CREATE SIEVE INDEX ON t (amount)")
            lab.check("SELECT * FROM t WHERE amount = 5000", exactly=1)
            lab.sql("UPDATE t SET amount = 5001 WHERE id = 251")
        assert (tables.folder(lab) / ".hoodie" / "metadata" / "files").is_dir()
        with lab.setting("hoodie.metadata.enable", "false"):
            lab.sql("REFRESH TABLE t")
            lab.check("SELECT * FROM t WHERE amount = 100 * 7919 % 1000", exactly=2)
            lab.sql("REFRESH SIEVE INDEX ON t")
            lab.check("SELECT * FROM t WHERE amount = 5001", exactly=1)
        with lab.setting("hoodie.metadata.enable", "true"):
            lab.sql("REFRESH TABLE t")
            lab.check("SELECT * FROM t WHERE amount = 5001", exactly=1)
            lab.check("SELECT * FROM t WHERE amount = 251 * 7919 % 1000", exactly=0)
