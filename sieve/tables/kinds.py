"""Why a table cannot be indexed, and what its owner can do."""

from __future__ import annotations

from sieve.errors import SieveError, UnsupportedError

_READ_BY_PATH = "save it as a table first (CREATE TABLE ... USING ... LOCATION ...)"


def refuse_kind(name: str, kind: str) -> SieveError:
    """The error for a relation of some kind, as the driver describes it.

    Args:
        name: the table as typed.
        kind: ``view``, ``temporary view``, ``stream``, ``path``, ``hive <serde>``, ``v2 <class>``,
            ``source <class>``, ``location <class>`` or ``format <name>``.
    """
    word, _, detail = kind.partition(" ")
    text = detail.lower()
    if kind in ("view", "temporary view"):
        return _unsupported(f"{name} is a {kind}; create the index on the table it reads")
    if word == "stream":
        return _unsupported(f"{name} is a streaming source; only stored tables can be indexed")
    if word == "path":
        return _unsupported(f"{name} is read by its path alone; {_READ_BY_PATH}")
    if word == "hive":
        return _unsupported(_hive(name, text))
    for lake in ("delta", "iceberg", "hudi"):
        if lake in text:
            return _unsupported(
                f"{name} is a {lake.capitalize()} table; Sieve indexes Parquet, ORC, CSV and JSON "
                "tables of the session catalog"
            )
    if word == "format":
        return _unsupported(
            f"{name} is stored as {detail}; Sieve indexes Parquet, ORC, CSV and JSON tables"
        )
    return _unsupported(
        f"{name} is read through {detail}, which Sieve does not know; it indexes Parquet, ORC, CSV "
        "and JSON tables of the session catalog"
    )


def _hive(name: str, serde: str) -> str:
    for format_name, setting in (
        ("parquet", "spark.sql.hive.convertMetastoreParquet"),
        ("orc", "spark.sql.hive.convertMetastoreOrc"),
    ):
        if format_name in serde:
            return (
                f"{name} is a Hive table that Spark reads through the Hive SerDe; set {setting} = "
                "true, so that Spark reads its files itself"
            )
    return (
        f"{name} is a Hive table with SerDe {serde or 'unknown'}, which Spark does not read itself; "
        "store it as Parquet or ORC"
    )


def _unsupported(message: str) -> UnsupportedError:
    return UnsupportedError("SIEVE_UNSUPPORTED_TABLE", message)
