"""Column place: finds the parts of a table's schema that affect the values of one column."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

_ZONELESS: Final = frozenset(
    {"boolean", "binary", "void", "byte", "short", "integer", "long", "float", "double", "date"}
)
_REMARKS: Final = frozenset({"comment", "CURRENT_DEFAULT"})
"""The keys in a column's metadata that no reader looks up. ``CURRENT_DEFAULT`` is the default value
for future rows."""

_MAX_SCHEMAS: Final = 1024


@dataclass(frozen=True, slots=True)
class ColumnPlace:
    """The parts of a table's schema that concern one column.

    Attributes:
        schema: the part of the table's schema that can affect the column's values.
        kind: the name of the column's type, or ``instant`` if a time zone can affect values of the
            type.
        default: whether the column, or a struct that contains the column, has a default value.
        field_id: whether the column, or a struct that contains the column, has a Parquet field id.
    """

    schema: str
    kind: str
    default: bool
    field_id: bool


@lru_cache(_MAX_SCHEMAS)
def find_column(
    column: tuple[str, ...], schema: str, *, orc: bool, positions: bool
) -> ColumnPlace | None:
    """Finds a column in a schema; returns None if the schema does not contain the column.

    Readers usually find a column in a file by its name. In ORC files of old Hive releases, which
    lack column names, readers find a column by its position. Neither later columns nor other fields
    of the same struct affect the column.

    Args:
        column: path of the column.
        schema: the schema in Spark's JSON form.
        orc: whether files may lack column names, as in old ORC files.
        positions: whether readers find columns by position even in files with column names.
    """
    fields, kind = json.loads(schema)["fields"], ""
    steps: list[Any] = []
    for name in column:
        at = next((n for n, field in enumerate(fields) if field["name"] == name), None)
        if at is None:
            return None
        metadata, kind = _remarkless(fields[at]["metadata"]), fields[at]["type"]
        step: dict[str, Any] = {"name": name, "metadata": metadata}
        # A reader may confuse two columns whose names differ only in case.
        step["alike"] = [f["name"] for f in fields if f["name"].lower() == name.lower()]
        if positions:
            step["until"] = _clean(fields[: at + 1])
        if orc:
            step["position"] = at
        steps.append(step)
        fields = kind.get("fields", []) if isinstance(kind, dict) else []
    all_metadata = [step["metadata"] for step in steps]
    return ColumnPlace(
        schema=json.dumps({"steps": steps, "type": _clean(kind)}, sort_keys=True),
        kind=kind_of(kind),
        default=any("EXISTS_DEFAULT" in metadata for metadata in all_metadata),
        field_id=any("parquet.field.id" in metadata for metadata in all_metadata),
    )


def kind_of(kind: Any) -> str:
    """Returns the kind of a type given in Spark's JSON form; ``instant`` for an unknown type."""
    if not isinstance(kind, str):
        return "instant"
    name = kind.partition("(")[0].partition(" ")[0]
    if name in {"string", "char", "varchar"}:
        return "string"
    return name if name in _ZONELESS or name == "decimal" else "instant"


@lru_cache(_MAX_SCHEMAS)
def without_remarks(schema: str) -> str:
    """From a schema in Spark's JSON form, removes the metadata that no reader looks up."""
    return json.dumps(_clean(json.loads(schema)))


def _clean(kind: Any) -> Any:
    """Removes the `_REMARKS` of all fields from a type in Spark's JSON form."""
    if isinstance(kind, list):
        return [_clean(one) for one in kind]
    if not isinstance(kind, dict):
        return kind
    return {
        key: _remarkless(value) if key == "metadata" else _clean(value)
        for key, value in kind.items()
    }


def _remarkless(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in metadata.items() if key not in _REMARKS}
