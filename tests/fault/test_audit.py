"""An audit reads files that a scan skipped, and so detects a wrong index."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from spark_session import Lab

from sieve.encoding.encoder import Encoder
from sieve.metadata.commit import newest, publish
from sieve.metadata.records import VersionId
from sieve.reader.version_reader import read_locations
from sieve.segments.blocks.cut_blocks import cut_segments
from sieve.segments.blocks.format import encode_segment
from sieve.storage.local import LocalStore
from tests.built_index import write_run

FILES = 4
QUERY = "SELECT * FROM t WHERE id = 5"
SAMPLE = "spark.sieve.audit.sample"


@pytest.fixture(scope="module")
def table(lab: Lab) -> Iterator[Lab]:
    """Creates an indexed table of four files with ten rows each, sorted by ``id``."""
    with lab.database("audited"):
        lab.sql(
            "CREATE TABLE u USING parquet AS SELECT id, cast(id AS string) AS s "
            f"FROM range(0, 40, 1, {FILES})"
        )
        lab.sql("CREATE SIEVE INDEX ON u (id)")
        yield lab


@pytest.fixture(scope="module")
def forged(table: Lab) -> Lab:
    """Creates a table with an index, and publishes a forged second version of this index.

    According to the forged version, the first file does not contain the keys 0 to 9.
    """
    table.sql(
        "CREATE TABLE t USING parquet AS SELECT id, id % 7 AS r, cast(id AS string) AS s "
        f"FROM range(0, 40, 1, {FILES})"
    )
    table.sql("CREATE SIEVE INDEX ON t (id)")
    ((registered,),) = (
        row[1:] for row in table.sql("SHOW TBLPROPERTIES t") if row[0].startswith("sieve.index.")
    )
    registration = json.loads(registered)
    directory = f"{registration['root']}/{registration['uuid']}"
    store = LocalStore()
    base = newest(store, directory)
    assert base is not None
    locations = read_locations(store, directory, base)
    by_name = locations.slots[np.argsort(locations.paths)]
    keys = np.arange(10, 40, dtype=np.int64)
    pairs = (keys, by_name[keys // 10].astype(np.int32), np.ones_like(keys))
    rows = [
        ("sieve", segment.first, segment.last, 0, 0, 0, encode_segment(segment))
        for segment in cut_segments(iter([pairs]), error=1, hole=1000)
    ]
    run = write_run(Path(directory.removeprefix("file:")), [rows], Encoder("bigint"), FILES)
    lie = dataclasses.replace(
        base, version=2, id=VersionId(uuid4().hex), parent=base.id, runs=(run,)
    )
    assert publish(store, directory, base, lambda _: lie) is lie
    return table


def test_audit_detects_a_wrong_index(forged: Lab) -> None:
    """Without an audit, a query loses a row because of the wrong index.

    With an audit, the query fails, and the error names the remedy, REFRESH with FULL.
    """
    lost = forged.run(QUERY)
    assert (lost.rows, lost.files) == ({}, 0)
    with forged.setting(SAMPLE, "1.0"):
        with pytest.raises(Exception, match=r"\[SIEVE_AUDIT_FAILED\]") as failure:
            forged.run(QUERY)
        for told in ("part-00000", "audited.t ", "id_sieve@2", "REFRESH SIEVE INDEX", " FULL"):
            assert told in str(failure.value)
        assert forged.sql("SELECT id FROM t WHERE id = 15") == [(15,)]
        assert [scan["files_read"] for scan in forged.explain(QUERY)] == [0]


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_audit_detects_a_wrong_index_in_any_query(forged: Lab, adaptive: str) -> None:
    """Audits detect the forged index version in joins, aggregates, subqueries and views."""
    view = "SELECT id + 0L AS k, s FROM t WHERE id < 9"
    forged.sql(f"CREATE OR REPLACE TEMPORARY VIEW below AS {view}")
    with forged.setting("spark.sql.adaptive.enabled", adaptive), forged.setting(SAMPLE, "1"):
        for query in (
            "SELECT count(*) FROM t a JOIN t b ON a.id = b.r WHERE b.id = 5",
            "SELECT r, max(s) FROM t WHERE id IN (3, 12) GROUP BY r",
            "SELECT id FROM t WHERE s = (SELECT max(s) FROM t WHERE id BETWEEN 4 AND 6)",
            "SELECT k FROM below",
        ):
            with pytest.raises(Exception, match="SIEVE_AUDIT_FAILED"):
                forged.run(query)
    forged.sql("DROP VIEW below")


def test_audit_reports_a_match_that_a_subquery_removes(forged: Lab) -> None:
    """A row of a skipped file satisfies the scan's filters, but not the query's subquery.

    The audit still reports that the index wrongly skips the row's file.
    """
    query = f"{QUERY} AND r < (SELECT min(r) FROM t)"
    assert forged.run(query).rows == {}
    with forged.setting(SAMPLE, "1.0"), pytest.raises(Exception, match="SIEVE_AUDIT_FAILED"):
        forged.run(query)


def test_zero_share_audits_no_file(forged: Lab) -> None:
    """If the audit's sample is zero, no audit runs, and the query still loses the row."""
    for share in ("0", "0.0"):
        with forged.setting(SAMPLE, share):
            assert forged.run(QUERY).rows == {}


def test_audit_fails_if_a_skipped_file_was_deleted(table: Lab) -> None:
    """If a skipped file was deleted, a query without an audit returns the right rows.

    With an audit, the query fails, because the audit cannot read the file.
    """
    query = "SELECT id FROM u WHERE id = 5"
    ((uri,),) = table.sql("SELECT DISTINCT _metadata.file_path FROM u WHERE id = 35")
    path = Path("/" + uri.removeprefix("file:").lstrip("/"))
    away = path.rename(path.with_name(f".{path.name}"))
    alone = table.run(query)
    assert (alone.rows, alone.files) == ({"(5,)": 1}, 1)
    quiet = "spark.sql.files.ignoreMissingFiles"
    with table.setting(SAMPLE, "1.0"), table.setting(quiet, "true"):
        with pytest.raises(Exception, match=r"SIEVE_AUDIT_UNREADABLE.*part-00003"):
            table.run(query)
        assert table.run("SELECT count(*) FROM u").rows == {"(30,)": 1}
        away.rename(path)
        assert table.run(query).rows == {"(5,)": 1}


def test_audit_detects_a_row_in_a_skipped_range(lab: Lab, tmp_path: Path) -> None:
    """An audit detects a matching row in a range of a file that a wrong index skips."""
    file = tmp_path / "a.csv"
    file.write_text("".join(f"{key:08}\n" for key in range(1000)))
    with lab.database("audited_ranges"), lab.setting("spark.sieve.range.bytes", "1000"):
        lab.sql(f"CREATE TABLE t (k INT) USING csv LOCATION '{tmp_path}'")
        lab.sql("CREATE SIEVE INDEX i ON t (k) OPTIONS (granularity = 'range')")
        written = file.stat()
        file.write_text(file.read_text().replace("00000700", "00077777"))
        os.utime(file, ns=(written.st_atime_ns, written.st_mtime_ns))
        query = "SELECT * FROM t WHERE k IN (5, 77777)"
        (told,) = lab.explain(query)
        assert (told["files_read"], told["ranges_read"], told["ranges_total"]) == (1, 1, 8)
        assert lab.sql(query) == [(5,)]
        with lab.setting(SAMPLE, "1.0"):
            with pytest.raises(Exception, match=r"\[SIEVE_AUDIT_FAILED\].*a\.csv"):
                lab.run(query)
            assert lab.sql("SELECT * FROM t WHERE k IN (5, 99999)") == [(5,)]
