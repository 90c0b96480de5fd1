"""Compares the hashes of Spark's executors with the hashes that Python computes."""

from __future__ import annotations

import random
from decimal import Context, Decimal

import numpy as np

from sieve.encoding.hashing import decimal_bytes, hash_bytes

DRAW = random.Random(42)
LENGTHS = [*range(80), 255, 1024, 70_001]
BINARIES = [DRAW.randbytes(length) for length in LENGTHS]
TEXTS = ["", "a", "é", "ß" * 31, "日本語", "🦊" * 9, "A\0b", "x" * 40, "550e8400-e29b-41d4-a716"]
EDGES = [0, 1, 127, 128, 255, 256, 32767, 32768, 10**18, 2**63 - 1, 2**63, 2**64, 10**38 - 1]
UNSCALED = sorted({sign * (edge + near) for edge in EDGES for near in (-1, 0) for sign in (-1, 1)})


def spark_hashes(lab, values, data_type):
    """Spark's ``xxhash64(value)`` of each value, as unsigned words in the order of the values."""
    rows = list(enumerate(values))
    frame = lab.spark.createDataFrame(rows, f"n INT, value {data_type}").repartition(2)
    got = frame.selectExpr("n", "xxhash64(value) AS hash").orderBy("n").collect()
    return np.array([row.hash for row in got], np.int64).view(np.uint64)


def test_binary_hashes_like_spark(lab):
    """Spark and Sieve compute equal hashes of byte strings of each length class of XXH64."""
    got = spark_hashes(lab, [bytearray(value) for value in BINARIES], "BINARY")
    assert np.array_equal(got, hash_bytes(BINARIES))


def test_text_hashes_like_spark(lab):
    """Strings and VARCHARs have the hash of their UTF-8 bytes."""
    got = spark_hashes(lab, TEXTS, "STRING")
    assert np.array_equal(got, hash_bytes([text.encode() for text in TEXTS]))
    with lab.database("hashes"):
        lab.sql("CREATE TABLE t (v VARCHAR(40)) USING parquet")
        lab.sql("INSERT INTO t VALUES ('x'), ('été')")
        rows = lab.sql("SELECT v, xxhash64(v) FROM t")
    want = hash_bytes([value.encode() for value, _ in rows])
    assert np.array_equal(np.array([row[1] for row in rows], np.int64).view(np.uint64), want)


def test_wide_decimals_hash_like_spark(lab):
    """Decimals with a precision of 19 or more hash as Java's BigInteger, even if they are small."""
    exact = Context(prec=60)
    for data_type, scale, digits in (
        ("DECIMAL(38,0)", 0, 38),
        ("DECIMAL(38,7)", 7, 38),
        ("DECIMAL(38,38)", 38, 38),
        ("DECIMAL(19,2)", 2, 19),
    ):
        unscaled = [value for value in UNSCALED if abs(value) < 10**digits]
        values = [Decimal(value).scaleb(-scale, exact) for value in unscaled]
        want = hash_bytes([decimal_bytes(value) for value in unscaled])
        assert np.array_equal(spark_hashes(lab, values, data_type), want), data_type


def test_decimals_read_from_files_hash_by_their_columns_scale(lab, tmp_path):
    """In every file format, Spark hashes decimals with the scale of the column's type."""
    values = "VALUES (1.5), (-200), (0), (12345678901234567.25) AS t(v)"
    for source in ("parquet", "orc", "csv", "json"):
        path = str(tmp_path / source)
        frame = lab.spark.sql(f"SELECT CAST(v AS DECIMAL(22,4)) v FROM {values}")
        frame.write.format(source).save(path)
        read = lab.spark.read.format(source).schema("v DECIMAL(22,4)").load(path)
        rows = read.selectExpr("v", "xxhash64(v)").collect()
        want = hash_bytes([decimal_bytes(int(row[0] * 10_000)) for row in rows])
        got = np.array([row[1] for row in rows], np.int64).view(np.uint64)
        assert len(rows) == 4
        assert np.array_equal(got, want), source
