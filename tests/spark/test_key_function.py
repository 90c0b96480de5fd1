from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_session import Lab

from sieve.encoding.encoder import Encoder

FLOATS = [
    0.0, -0.0, 1.0, -1.0, math.pi, 5e-324, -5e-324, 2.2250738585072014e-308,
    1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan, 1e-45, 3.4e38,
]  # fmt: skip
TEXTS = [b"", b"a", b"aaaaaaa", b"aaaaaaaa", b"aaaaaaaab", b"\x7f", b"\0", b"a\0",
         "\u00e4\U0001f600z".encode(), b"\0\0\0\0\0\0\0\0\1"]  # fmt: skip
BYTES = [*TEXTS, b"\xff" * 9, b"\x80", b"\xff", b"\xc3\x28\xa0\xa1"]


def _integers(bits: int) -> list[int]:
    top = 1 << (bits - 1)
    return [-top, -top + 1, -1, 0, 1, 7, top - 2, top - 1]


def _decimals(precision: int, scale: int) -> list[Decimal]:
    top = 10**precision - 1
    around = [top, top - 1, 0, 1, 5, *(1 << n for n in range(50, 127)), *(3 << n for n in (56, 90))]
    fitting = [n for n in around if n <= top]
    return [Decimal(f"{sign * n}E-{scale}") for n in fitting for sign in (1, -1)]


COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "tinyint": (pa.int8(), _integers(8)),
    "smallint": (pa.int16(), _integers(16)),
    "int": (pa.int32(), _integers(32)),
    "bigint": (pa.int64(), _integers(64)),
    "float": (pa.float32(), [x for x in FLOATS if not 3.5e38 < abs(x) < math.inf]),
    "double": (pa.float64(), FLOATS),
    "date": (pa.date32(), [-719162, -1, 0, 1, 2932896, -2000000, 20000]),
    "timestamp": (pa.timestamp("us", "UTC"), [-62135596800000000, -1, 0, 1, 253402300799999999]),
    "timestamp_ntz": (pa.timestamp("us"), [-62135596800000000, -1, 0, 1, 253402300799999999]),
    "decimal(9,2)": (pa.decimal128(9, 2), _decimals(9, 2)),
    "decimal(18,6)": (pa.decimal128(18, 6), _decimals(18, 6)),
    "decimal(19,0)": (pa.decimal128(19, 0), _decimals(19, 0)),
    "decimal(38,10)": (pa.decimal128(38, 10), _decimals(38, 10)),
    "decimal(38,38)": (pa.decimal128(38, 38), _decimals(38, 38)),
    "string": (pa.string(), [text.decode() for text in TEXTS]),
    "binary": (pa.binary(), BYTES),
}


def _column(type_name: str) -> pa.Array:
    arrow, values = COLUMNS[type_name]
    if type_name in {"date", "timestamp", "timestamp_ntz"}:
        whole = pa.int32() if type_name == "date" else pa.int64()
        return pa.array([*values, None], whole).cast(arrow)
    return pa.array([*values, None], arrow)


def _codes(array: pa.Array, type_name: str) -> list[int | None]:
    encoded = Encoder(type_name).encode(array)
    there = (encoded.valid & ~encoded.nan).tolist()
    return [
        code if some else None for code, some in zip(encoded.codes.tolist(), there, strict=True)
    ]


OFTEN = {"bigint", "double", "decimal(38,10)", "decimal(38,38)", "string", "binary"}
"""The types that `make test` tests. Any other type has the codes of one of these types."""


@pytest.mark.parametrize(
    "type_name",
    [pytest.param(name, marks=() if name in OFTEN else pytest.mark.long) for name in COLUMNS],
)
def test_a_column_has_the_codes_of_an_index(lab: Lab, tmp_path: Path, type_name: str) -> None:
    """`sieve_key` returns the encoder's codes in compiled code, interpreted code, and WHERE."""
    array = _column(type_name)
    pq.write_table(pa.table({"n": pa.array(range(len(array))), "x": array}), tmp_path / "x.parquet")
    frame = lab.spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(str(tmp_path))
    assert dict(frame.dtypes)["x"] == type_name
    frame.createOrReplaceTempView("keyed")
    wanted = _codes(array, type_name)
    for whole, factory in (("true", "CODEGEN_ONLY"), ("false", "NO_CODEGEN")):
        with (
            lab.setting("spark.sql.codegen.wholeStage", whole),
            lab.setting("spark.sql.codegen.factoryMode", factory),
        ):
            rows = lab.sql("SELECT n, sieve_key(x), sieve_key(named_struct('x', x).x) FROM keyed")
        assert sorted(rows) == [(n, code, code) for n, code in enumerate(wanted)]
    # A decimal has hundreds of codes, so the test counts only a dozen codes.
    codes = list({None, *wanted[:: len(wanted) // 12 + 1]})
    counts = (
        f"SELECT {k}, count(*) FROM keyed WHERE sieve_key(x) <=> {_literal(code)}"
        for k, code in enumerate(codes)
    )
    found = sorted(lab.sql(" UNION ALL ".join(counts)))
    assert found == [(k, wanted.count(code)) for k, code in enumerate(codes)]
    groups = lab.sql("SELECT sieve_key(x), count(*) FROM keyed GROUP BY sieve_key(x)")
    assert dict(groups) == {code: wanted.count(code) for code in wanted}
    lab.spark.catalog.dropTempView("keyed")


def _literal(code: int | None) -> str:
    if code is None:
        return "NULL"
    return "-9223372036854775807L - 1L" if code == -(1 << 63) else f"{code}L"


@pytest.mark.parametrize(
    ("literal", "type_name", "value"),
    [
        ("true", "boolean", True),
        ("-128Y", "tinyint", -128),
        ("-1.5F", "float", -1.5),
        ("-0.0D", "double", -0.0),
        ("DATE '1969-12-31'", "date", dt.date(1969, 12, 31)),
        ("TIMESTAMP '1969-12-31 23:59:59.999999Z'", "timestamp", -1),
        ("TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'", "timestamp_ntz", -1),
        ("-1.25BD", "decimal(3,2)", Decimal("-1.25")),
        ("12345678901234567890.12BD", "decimal(22,2)", Decimal("12345678901234567890.12")),
        ("'sieve'", "string", "sieve"),
        ("X'FF00'", "binary", b"\xff\x00"),
        ("CAST(X'FF00FF' AS STRING)", "binary", b"\xff\x00\xff"),
    ],
)
def test_a_constant_has_the_code_of_its_value(
    lab: Lab, literal: str, type_name: str, value: object
) -> None:
    """For a constant, `sieve_key` returns the constant's code, even if its bytes are not UTF-8."""
    arrow = pa.decimal128(*map(int, type_name[8:-1].split(","))) if "(" in type_name else None
    arrow = arrow or COLUMNS[type_name][0]
    (code,) = _codes(pa.array([value], arrow), type_name)
    assert lab.sql(f"SELECT sieve_key({literal})") == [(code,)]
    assert lab.sql(f"SELECT sieve_key(if(id = 0, {literal}, NULL)) FROM range(1)") == [(code,)]


def test_null_and_nan_have_no_code(lab: Lab) -> None:
    """`sieve_key` returns NULL for NaN, for NULL with a type, and for NULL without a type."""
    assert lab.sql("SELECT sieve_key(NULL), sieve_key(CAST(NULL AS DATE))") == [(None, None)]
    nans = "sieve_key(double('NaN') * id), sieve_key(float('NaN') * id)"
    assert lab.sql(f"SELECT {nans} FROM range(1)") == [(None, None)]


@pytest.mark.parametrize(
    ("call", "condition"),
    [
        ("sieve_key(array(1))", "SIEVE_UNSUPPORTED_TYPE"),
        ("sieve_key(named_struct('a', 1))", "SIEVE_UNSUPPORTED_TYPE"),
        ("sieve_key(INTERVAL 1 DAY)", "SIEVE_UNSUPPORTED_TYPE"),
        ("sieve_key()", "SIEVE_INVALID_ARGUMENT"),
        ("sieve_key(1, 2)", "SIEVE_INVALID_ARGUMENT"),
    ],
)
def test_type_without_a_key_is_refused(lab: Lab, call: str, condition: str) -> None:
    """The error names a type that cannot be indexed, or a wrong number of arguments."""
    with pytest.raises(Exception, match=condition):
        lab.sql(f"SELECT {call}")


def test_functions_describe_themselves(lab: Lab) -> None:
    """SHOW FUNCTIONS lists Sieve's functions; DESCRIBE FUNCTION shows how to call a function."""
    names = [name for (name,) in lab.sql("SHOW FUNCTIONS LIKE 'sieve*'")]
    assert names == [
        f"sieve_{what}"
        for what in (
            "advice describe explain files indexes inspect key segments status versions".split()
        )
    ]
    for name in names:
        text = "\n".join(line for (line,) in lab.sql(f"DESCRIBE FUNCTION EXTENDED {name}"))
        assert f"Usage: {name}(" in text
        assert f"> SELECT {name}(" in text or f"FROM {name}(" in text
