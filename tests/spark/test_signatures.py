"""Signatures: substring indexes serve queries for parts of UUIDs, whose keys are in all files."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from forged_version import forge
from spark_session import Lab

from sieve.encoding.encoder import Encoder
from sieve.metadata.file_list import Locations
from sieve.metadata.records import RunId, RunRef
from sieve.segments.signatures import decode_signatures, encode_signatures
from tests.built_index import Row, write_run

FILES = 6
LINES = 12_000
"""The number of lines in a file. With this number of UUIDs, nearly all sequences of 4 digits occur
in each file."""
OPTIONS = "OPTIONS (kind = 'substring')"
UUID = "regexp_replace(md5(string(id)), '(.{8})(.{4})(.{4})(.{4})', '$1-$2-$3-$4-')"


@pytest.fixture(scope="module")
def requests(lab: Lab) -> Iterator[Lab]:
    """Lines with a UUID each."""
    with lab.database("signatures"):
        lab.sql(
            f"CREATE TABLE t USING parquet AS SELECT id, concat('id=', {UUID}) AS line "
            f"FROM range(0, {FILES * LINES}, 1, {FILES})"
        )
        lab.sql(f"CREATE SIEVE INDEX ON t (line) {OPTIONS}")
        with lab.setting("spark.sieve.audit.sample", "1"):
            yield lab


def uuid(lab: Lab, number: int) -> str:
    """The UUID in the line with this id."""
    ((line,),) = lab.sql(f"SELECT line FROM t WHERE id = {number}")
    return str(line)[3:]


def test_a_query_for_a_uuid_reads_the_file_with_this_uuid(requests: Lab) -> None:
    """A query for a UUID, or for a long part of it, reads only the files with this text."""
    found = uuid(requests, 4242)
    for predicate in (
        f"line LIKE '%{found}%'",
        f"contains(line, '{found[:20]}')",
        f"line LIKE '%{found[-20:]}'",
        f"line = 'id={found}'",
        f"line LIKE 'id={found[:12]}%{found[14:]}'",
        f"line LIKE '%{found[:12]}%{found[20:]}'",
        f"instr(line, '{found}') > 0",
    ):
        answer = requests.check(f"SELECT id FROM t WHERE {predicate}", exactly=1)
        assert answer.rows == {"(4242,)": 1}
    parts = f"%{found[4:13]}%{found[14:24]}_{found[25:]}"
    answer = requests.check(f"SELECT id FROM t WHERE line LIKE '{parts}'", at_most=3)
    assert answer.rows == {"(4242,)": 1}
    absent = found[:-4] + "wxyz"
    requests.check(f"SELECT id FROM t WHERE line LIKE '%{absent}%'", exactly=0)
    other = uuid(requests, 70_000)
    requests.check(
        f"SELECT id FROM t WHERE line LIKE '%{found}%' OR line LIKE '%{other}%'", exactly=2
    )
    requests.check(
        f"SELECT id FROM t WHERE line LIKE '%{found}%' AND line LIKE '%{other}%'", exactly=0
    )
    requests.check(f"SELECT count(*) FROM t WHERE NOT line LIKE '%{found}%'", exactly=FILES)


def test_pieces_of_a_uuid_lose_no_row(requests: Lab) -> None:
    """A query for any part of a UUID finds its line; parts of 12 digits read few files."""
    read = []
    for number in range(5, FILES * LINES, 30_001):
        found = uuid(requests, number)
        for first, last in ((24, 36), (0, 8), (9, 18), (3, 34)):
            part = found[first:last]
            answer = requests.check(f"SELECT max(id) FROM t WHERE line LIKE '%{part}%'")
            assert answer.rows == {f"({number},)": 1}
            read += [answer.files] if last - first >= 12 else []
    assert sum(read) < 2 * len(read)


def test_describe_and_check_tell_of_signatures(requests: Lab) -> None:
    """DESCRIBE expects few files for a text of 16 bytes, and CHECK verifies the signatures."""
    facts = requests.facts("line_substring_sieve")
    assert float(facts["files read for a text of 4 bytes"].split()[0]) > FILES - 1
    assert float(facts["files read for a text of 16 bytes"].split()[0]) < 2
    assert [row[2] for row in requests.sql("CHECK SIEVE INDEX ON t")] == ["ok"]
    assert "signature" in shapes(requests)


def shapes(lab: Lab) -> set[str]:
    """The shapes of the index's segments."""
    rows = lab.sql("SELECT DISTINCT shape FROM sieve_segments('t', 'line_substring_sieve')")
    return {row[0] for row in rows}


@pytest.mark.parametrize("full", ["", pytest.param("FULL", marks=pytest.mark.long)])
def test_files_of_a_refresh_have_signatures(lab: Lab, full: str) -> None:
    """REFRESH makes signatures for new files, and keeps the signatures of other files."""
    with lab.database("signed_later"):
        lab.sql(
            f"CREATE TABLE t USING parquet AS SELECT id, {UUID} AS line "
            f"FROM range(0, {2 * LINES}, 1, 2)"
        )
        lab.sql(f"CREATE SIEVE INDEX ON t (line) {OPTIONS}")
        lab.sql(f"INSERT INTO t SELECT id, {UUID} FROM range({2 * LINES}, {4 * LINES}, 1, 2)")
        ((line,),) = lab.sql(f"SELECT line FROM t WHERE id = {3 * LINES + 7}")
        query = f"SELECT id FROM t WHERE line LIKE '%{line}%'"
        lab.check(query, exactly=2)
        lab.sql(f"REFRESH SIEVE INDEX ON t {full}")
        lab.check(query, exactly=1)


def test_check_finds_a_location_whose_signature_lacks_bits(lab: Lab) -> None:
    """CHECK reports a file whose signature lacks the bits of a range of hashes."""

    def without_bits(locations: Locations, run: RunRef, place: Path) -> tuple[Locations, RunRef]:
        made: list[list[Row]] = []
        for file in run.files:
            rows = pq.read_table(place / "runs" / run.id / file.name).to_pylist()
            for row in (row for row in rows if row["shape"] == "signature"):
                one = decode_signatures(np.frombuffer(row["payload"], np.uint8))
                images = [one.of(k) for k in range(run.locations)]
                if one.piece == 5 and images[1] is not None:
                    images[1] = images[1] * np.uint8(0)
                row["payload"] = encode_signatures(one.piece, images)
            made.append([tuple(row.values()) for row in rows])
        encoder, name = Encoder.from_json(dict(run.encoder)), RunId(secrets.token_hex(16))
        return locations, write_run(place, made, encoder, run.locations, name)

    with lab.database("unsigned_bits"):
        lab.sql(
            f"CREATE TABLE t USING parquet AS SELECT id, {UUID} AS line "
            f"FROM range(0, {2 * LINES}, 1, 2)"
        )
        lab.sql(f"CREATE SIEVE INDEX ON t (line) {OPTIONS}")
        assert [row[2] for row in lab.sql("CHECK SIEVE INDEX ON t")] == ["ok"]
        forge(lab, "line_substring_sieve", without_bits)
        with pytest.raises(Exception, match="loses a sequence of 8 bytes") as refusal:
            lab.sql("CHECK SIEVE INDEX ON t")
        assert str(refusal.value).count("loses a sequence") == 1


@pytest.mark.parametrize(
    "few",
    [
        pytest.param("string(null)", marks=pytest.mark.long),
        "'hello world'",
        pytest.param(UUID, marks=pytest.mark.long),
    ],
)
def test_small_files_do_not_hide_that_keys_tell_little(lab: Lab, few: str) -> None:
    """If the keys of a few small files tell much, UUIDs in large files still get signatures."""
    with lab.database("mixed"):
        lab.sql(
            f"CREATE TABLE t USING parquet AS SELECT id, {UUID} AS line "
            f"FROM range(0, {3 * LINES}, 1, 3)"
        )
        lab.sql(f"INSERT INTO t SELECT id, {few} FROM range(-40, 0, 1, 2)")
        lab.sql(f"CREATE SIEVE INDEX ON t (line) {OPTIONS}")
        for number in (7, 2 * LINES + 9):
            ((line,),) = lab.sql(f"SELECT line FROM t WHERE id = {number}")
            lab.check(f"SELECT id FROM t WHERE line LIKE '%{line[4:30]}%'", exactly=1)


def test_words_need_no_signature(lab: Lab) -> None:
    """If sequences of 4 bytes select the files of a text, the index has no signatures."""
    with lab.database("unsigned"):
        lab.sql(
            "CREATE TABLE t USING parquet AS SELECT concat(sha2(string(id DIV 5000), 256), "
            "id % 100) AS line FROM range(0, 20000, 1, 4)"
        )
        lab.sql(f"CREATE SIEVE INDEX ON t (line) {OPTIONS}")
        lab.check("SELECT * FROM t WHERE line LIKE concat('%', sha2('2', 256), '%')", exactly=1)
        assert "signature" not in shapes(lab)
