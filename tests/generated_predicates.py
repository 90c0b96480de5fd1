"""Random SQL predicates on a generated table; no predicate raises an error for any row."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from generated_tables import GeneratedColumn, GeneratedTable

_ORDER = ("=", "=", "<", "<=", ">", ">=", "<>", "<=>")
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def draw_predicate(rng: random.Random, table: GeneratedTable, depth: int = 3) -> str:
    """A boolean SQL expression of the table's columns."""
    if depth and rng.random() < 0.55:
        how = rng.random()
        if how < 0.2:
            return f"NOT ({draw_predicate(rng, table, depth - 1)})"
        word = " AND " if how < 0.65 else " OR "
        parts = [draw_predicate(rng, table, depth - 1) for _ in range(rng.choice([2, 2, 3]))]
        return "(" + word.join(f"({part})" for part in parts) + ")"
    if rng.random() < 0.04:
        constant = rng.choice(["TRUE", "FALSE", "CAST(NULL AS BOOLEAN)"])
        return rng.choice([constant, "p = 'a'", "p IS NULL", "rid % 3 = 0"])
    # Most terms use indexed columns, because only these terms test skipping.
    indexed = [c for c in table.columns if c.sql in table.indexed]
    column = rng.choice(indexed if rng.random() < 0.8 else list(table.columns))
    (form,) = rng.choices(list(_LEAVES), list(_LEAVES.values()))
    return form(rng, column)


def literal(column: GeneratedColumn, value: Any) -> str:
    """A SQL constant of the column's type."""
    kind = column.kind
    if value is None:
        return f"CAST(NULL AS {kind.sql})"
    render = _LITERALS.get(kind.family)
    return render(value) if render else f"CAST('{value}' AS {kind.sql})"


def quoted(text: str) -> str:
    """A string literal in SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _real(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value).replace("inf", "Infinity")


_LITERALS: Mapping[str, Callable[[Any], str]] = {
    "boolean": lambda value: str(value).upper(),
    "float": lambda value: f"float('{_real(value)}')",
    "double": lambda value: f"double('{_real(value)}')",
    "date": lambda value: f"date_from_unix_date({value})",
    "timestamp": lambda value: f"timestamp_micros(CAST('{value}' AS BIGINT))",
    "timestamp_ntz": lambda value: (
        "TIMESTAMP_NTZ '" + str(np.datetime64(value, "us")).replace("T", " ") + "'"
    ),
    "string": quoted,
    "varchar": quoted,
    "binary": lambda value: f"X'{value.hex()}'",
}


def _value(rng: random.Random, column: GeneratedColumn) -> Any:
    """A constant: usually a table value, sometimes a neighbour of one, or a random value."""
    value = rng.choice(column.pool) if rng.random() < 0.7 else column.kind.draw(rng)
    if rng.random() < 0.8:
        return value
    family = column.kind.family
    if family in _BITS:
        half = 1 << (_BITS[family] - 1)
        return min(half - 1, max(-half, value + rng.choice([-1, 1])))
    if family in ("date", "timestamp", "timestamp_ntz") and value > -700000:
        return value + rng.choice([-1, 1])
    if family in ("string", "varchar"):
        return rng.choice([value + "a", value[:-1], value + "\0"])
    return value


def _own(rng: random.Random, column: GeneratedColumn) -> str:
    return literal(column, _value(rng, column))


def _compared(rng: random.Random, left: str, right: str) -> str:
    op = rng.choice(_ORDER)
    return f"{left} {op} {right}" if rng.random() < 0.8 else f"{right} {op} {left}"


def _comparison(rng: random.Random, column: GeneratedColumn) -> str:
    return _compared(rng, column.sql, _own(rng, column))


def _membership(rng: random.Random, column: GeneratedColumn) -> str:
    # From 10 constants on, Spark evaluates IN with a set instead of comparisons.
    values = [_value(rng, column) for _ in range(rng.choice([1, 2, 5, 14]))]
    if rng.random() < 0.2:
        values.append(None)
    word = rng.choice(["IN", "IN", "NOT IN"])
    return f"{column.sql} {word} ({', '.join(literal(column, v) for v in values)})"


def _between(rng: random.Random, column: GeneratedColumn) -> str:
    word = rng.choice(["", "", "NOT "])
    return f"{column.sql} {word}BETWEEN {_own(rng, column)} AND {_own(rng, column)}"


def _null(rng: random.Random, column: GeneratedColumn) -> str:
    return column.sql + rng.choice([" IS NULL", " IS NOT NULL", " = NULL", " <=> NULL", " < NULL"])


def _conditional(rng: random.Random, column: GeneratedColumn) -> str:
    c, one, other = column.sql, _own(rng, column), _own(rng, column)
    return rng.choice(
        [
            f"coalesce({c}, {one}) = {other}",
            f"nullif({c}, {one}) IS NULL",
            f"CASE WHEN {c} = {one} THEN TRUE ELSE {c} IS NULL END",
            f"if({c} > {one}, rid % 2 = 0, FALSE)",
            f"greatest({c}, {one}) = {other}",
        ]
    )


def _typed(rng: random.Random, column: GeneratedColumn) -> str:
    """Predicates for the column's type, with constants of other types, functions and casts."""
    return _FORMS[column.kind.family](rng, column)


def _integer(rng: random.Random, column: GeneratedColumn) -> str:
    c, value = column.sql, _value(rng, column)
    right = rng.choice(
        [
            f"CAST({value % 100}.5 AS DECIMAL(5,1))",
            f"CAST('{value}.0' AS DECIMAL(25,3))",
            f"double('{value}')",
            f"float('{value}')",
            f"'{value}'",
            f"CAST('{value}' AS DECIMAL(20,0))",
            "9223372036854775807",
        ]
    )
    wide = [f"CAST({c} AS DECIMAL(25,2))", f"CAST({c} AS DOUBLE)", f"abs(CAST({c} AS DOUBLE))"]
    return _compared(rng, rng.choice([c, c, c, *wide]), right)


def _floating(rng: random.Random, column: GeneratedColumn) -> str:
    c = column.sql
    return rng.choice(
        [
            _compared(rng, c, rng.choice(["0.1", "0", "-3", "1e0", "2.5", "double('NaN')"])),
            _compared(rng, f"CAST({c} AS DOUBLE)", rng.choice(["0.1", "1", "double('NaN')"])),
            f"isnan({c})",
            f"NOT isnan({c})",
            f"-{c} = 0.0",
        ]
    )


def _decimal(rng: random.Random, column: GeneratedColumn) -> str:
    other = f"{_value(rng, column):f}BD"
    return _compared(rng, column.sql, rng.choice(["1", "0.05", "1.123456789", "2e0", "'3'", other]))


def _boolean(rng: random.Random, column: GeneratedColumn) -> str:
    c = column.sql
    return rng.choice([c, f"NOT {c}", f"{c} = 'true'", f"{c} <> TRUE"])


def _text(rng: random.Random, column: GeneratedColumn) -> str:
    c, value = column.sql, _value(rng, column)
    start = value[: rng.randint(0, len(value))].replace("\\", "")
    plain = start.replace("%", "").replace("_", "")
    return rng.choice(
        [
            f"{c} LIKE {quoted(plain + '%')}",
            f"{c} NOT LIKE {quoted(plain + '%')}",
            f"{c} LIKE {quoted(plain + '_%')}",
            f"{c} LIKE {quoted(plain + '%a')}",
            f"{c} LIKE {quoted(start)}",
            f"startswith({c}, {quoted(start)})",
            f"upper({c}) = {quoted(value.upper())}",
            f"length({c}) > 3",
            f"trim({c}) = {quoted(value)}",
            f"substr({c}, 1, 2) = {quoted(value[:2])}",
            f"concat({c}, 'x') > {quoted(value)}",
        ]
    )


def _binary(rng: random.Random, column: GeneratedColumn) -> str:
    c = column.sql
    return rng.choice([f"length({c}) > 2", f"hex({c}) LIKE '50%'", f"startswith({c}, X'5046')"])


def _date(rng: random.Random, column: GeneratedColumn) -> str:
    c, own, op = column.sql, _own(rng, column), rng.choice(_ORDER)
    unit = rng.choice(["year", "quarter", "month", "week", "day", "hour"])
    return rng.choice(
        [
            f"year({c}) {op} year({own})",
            f"trunc({c}, 'MM') {op} trunc({own}, 'MM')",
            f"date_trunc('{unit}', {c}) {op} date_trunc('{unit}', {own})",
            f"{c} {op} CAST({own} AS TIMESTAMP)",
            f"{c} {op} CAST({own} AS TIMESTAMP_NTZ)",
            f"date_add({c}, 3) {op} {own}",
            f"date_sub({c}, 40) {op} {own}",
            f"{c} {op} CAST({own} AS STRING)",
            f"month({c}) = {rng.randint(1, 12)}",
        ]
    )


def _time(rng: random.Random, column: GeneratedColumn) -> str:
    c, own, op = column.sql, _own(rng, column), rng.choice(_ORDER)
    day = f"CAST({own} AS DATE)"
    unit = rng.choice(["year", "quarter", "month", "week", "day", "hour"])
    return rng.choice(
        [
            f"CAST({c} AS DATE) {op} {day}",
            f"CAST({c} AS DATE) {op} {day}",
            f"year({c}) {op} year({own})",
            f"date_trunc('{unit}', {c}) {op} date_trunc('{unit}', {own})",
            f"trunc(CAST({c} AS DATE), 'MM') {op} trunc({day}, 'MM')",
            f"{c} {op} {day}",
            f"CAST({c} AS TIMESTAMP_NTZ) {op} CAST({own} AS TIMESTAMP_NTZ)",
            f"CAST({c} AS TIMESTAMP) {op} CAST({own} AS TIMESTAMP)",
            f"hour({c}) = {rng.randint(0, 23)}",
            f"date_add(CAST({c} AS DATE), 2) {op} {day}",
        ]
    )


Form = Callable[[random.Random, GeneratedColumn], str]

_FORMS: Mapping[str, Form] = dict.fromkeys(_BITS, _integer) | {
    "boolean": _boolean,
    "float": _floating,
    "double": _floating,
    "decimal": _decimal,
    "date": _date,
    "timestamp": _time,
    "timestamp_ntz": _time,
    "string": _text,
    "varchar": _text,
    "binary": _binary,
}
_LEAVES: Mapping[Form, int] = {
    _comparison: 30,
    _membership: 12,
    _between: 10,
    _null: 12,
    _conditional: 6,
    _typed: 30,
}
