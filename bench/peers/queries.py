"""The queries of the comparison. Most queries look for keys that occur in the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.lineitem import order_key
from bench.peers.data import Dataset

KEY = "one key"
"""Name of the query that also runs on an earlier version of the table."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query of the comparison.

    Attributes:
        name: a description of the query in words.
        text: SQL text of the query, in which `{t}` stands for the table's name.
    """

    name: str
    text: str


def queries_of(table: Dataset, scale: int) -> Sequence[Query]:
    """The queries that run on a table.

    Args:
        table: queried table.
        scale: TPC-H's scale factor for lineitem.
    """
    made: Mapping[str, Callable[[], Sequence[Query]]] = {
        "lineitem": lambda: _lineitem(table, scale),
        "log": lambda: _log(table),
        "flights": lambda: _flights(table),
        "adversarial": lambda: _adversarial(table),
    }
    return made[table.name]()


def small_tables(table: Dataset, scale: int) -> Mapping[str, str]:
    """The small tables of joins: a dict from a table's name to the query that creates the table."""
    if table.name == "lineitem":
        keys = ", ".join(str(order_key(1_500_000 * scale * k // 21)) for k in range(1, 21))
        return {"twenty_orders": f"SELECT explode(array({keys})) AS k"}
    if table.name == "log":
        return {"twenty_users": "SELECT 900000 + id * 777 AS k FROM range(20)"}
    if table.name == "adversarial":
        keys = ", ".join(str(rows["random"][3]) for rows in _samples(table, 20))
        return {"twenty_randoms": f"SELECT explode(array({keys})) AS k"}
    return {"three_planes": "SELECT explode(array('N201AA', 'N840MQ', 'N76200')) AS k"}


def _rows(table: Dataset) -> str:
    """Selects all original columns by name, because ``*`` adds metadata columns on Hudi tables."""
    return f"SELECT {', '.join(pq.read_schema(table.files[0]).names)} FROM {{t}}"


def _samples(table: Dataset, number: int) -> Sequence[Mapping[str, Sequence[int]]]:
    """For each of `number` files, a dict from column to the values of the first eight rows."""
    chosen = table.files[:: len(table.files) // number][:number]
    return [pq.read_table(file).slice(0, 8).to_pydict() for file in chosen]


def _lineitem(table: Dataset, scale: int) -> Sequence[Query]:
    orders = 1_500_000 * scale
    hundred = ", ".join(str(order_key(orders * k // 101)) for k in range(1, 101))
    sums = "count(*), sum(l_quantity)"
    day = "DATE '1995-03-15'"
    ask = f"SELECT {sums} FROM {{t}} WHERE "
    return (
        Query(KEY, f"{_rows(table)} WHERE l_orderkey = {order_key(orders // 3)}"),
        Query("an absent key", f"{_rows(table)} WHERE l_orderkey = {order_key(0) + 9}"),
        Query("100 keys", f"{ask}l_orderkey IN ({hundred})"),
        Query("one day", f"{ask}l_shipdate = {day}"),
        Query("one week", f"{ask}l_shipdate BETWEEN {day} AND {day} + 6"),
        Query("one year", f"{ask}l_shipdate BETWEEN {day} AND {day} + 364"),
        Query("another day", f"{ask}l_receiptdate = {day}"),
        Query("two columns", f"{ask}l_shipdate = {day} AND l_receiptdate >= {day} + 28"),
        Query("join", f"SELECT {sums} FROM {{t}} JOIN twenty_orders ON l_orderkey = k"),
        Query("first ten", "SELECT l_shipdate FROM {t} ORDER BY l_shipdate LIMIT 10"),
    )


def _log(table: Dataset) -> Sequence[Query]:
    some = table.files[:: len(table.files) // 100][:100]
    ids = [pq.read_table(file, columns=["id"])["id"][17].as_py() for file in some]
    hundred = ", ".join(f"'{one}'" for one in ids)
    middle = table.files[len(table.files) // 2]
    at = pq.read_table(middle, columns=["at"])["at"]
    seconds = int(pc.max(at).as_py().timestamp())
    ask = "SELECT count(*), max(url) FROM {t} WHERE "

    def since(length: int) -> str:
        return f"at BETWEEN timestamp_seconds({seconds}) AND timestamp_seconds({seconds + length})"

    files = [pq.ParquetFile(file).metadata.num_rows for file in table.files]
    tenth = sum(files) // 100
    return (
        Query(KEY, f"{_rows(table)} WHERE id = '{ids[50]}'"),
        Query("an absent key", f"{_rows(table)} WHERE id = '0123abcd-0123-0123-0123-0123456789ab'"),
        Query("100 keys", f"{ask}id IN ({hundred})"),
        Query("a frequent user", f"{ask}user_id = 3"),
        Query("a rare user", f"{ask}user_id = 123456"),
        Query("one minute", f"{ask}{since(60)}"),
        Query("a tenth of the time", f"{ask}{since(tenth)}"),
        Query("two columns", f"{ask}user_id = 40 AND {since(600)}"),
        Query("join", "SELECT count(*), max(url) FROM {t} JOIN twenty_users ON user_id = k"),
        Query("first ten", "SELECT at FROM {t} ORDER BY at DESC LIMIT 10"),
    )


def _flights(table: Dataset) -> Sequence[Query]:
    ask = "SELECT count(*), sum(distance) FROM {t} WHERE "
    return (
        Query(KEY, f"{_rows(table)} WHERE tailnum = 'N840MQ' AND carrier = 'MQ'"),
        Query("an absent key", f"{_rows(table)} WHERE tailnum = 'N00000'"),
        Query("a rare destination", f"{ask}dest = 'ANC'"),
        Query("a frequent destination", f"{ask}dest = 'ORD'"),
        Query(
            "one day", f"{ask}time_hour BETWEEN '2013-06-13 04:00:00Z' AND '2013-06-14 03:59:59Z'"
        ),
        Query(
            "a quarter", f"{ask}time_hour BETWEEN '2013-04-01 04:00:00Z' AND '2013-07-01 03:59:59Z'"
        ),
        Query("great delays", f"{ask}arr_delay > 800"),
        Query("two columns", f"{ask}dest = 'HNL' AND arr_delay > 180"),
        Query("join", "SELECT count(*), sum(distance) FROM {t} JOIN three_planes ON tailnum = k"),
        Query("first ten", "SELECT arr_delay FROM {t} ORDER BY arr_delay DESC LIMIT 10"),
    )


def _adversarial(table: Dataset) -> Sequence[Query]:
    middle = _samples(table, 3)[1]
    hundred = ", ".join(str(rows["random"][5]) for rows in _samples(table, 100))
    ask = "SELECT count(*), sum(n) FROM {t} WHERE "

    def some(column: str, length: int) -> str:
        return f"{ask}{column} BETWEEN {middle[column][2]} AND {middle[column][2] + length}"

    return (
        Query(KEY, f"{_rows(table)} WHERE random = {middle['random'][0]}"),
        Query("an absent key", f"{_rows(table)} WHERE random = {middle['random'][0] + 1}"),
        Query("100 keys", f"{ask}random IN ({hundred})"),
        Query("a range of random keys", some("random", 1 << 50)),
        Query("a tooth", f"{ask}sawtooth = {middle['sawtooth'][1]}"),
        Query("a range of teeth", some("sawtooth", 100)),
        Query("where it leaps to", f"{ask}leaping = {middle['leaping'][1]}"),
        Query("a range of leaps", some("leaping", 100)),
        Query("beside the hot key", f"{ask}hot BETWEEN {_beside(middle['hot'])}"),
        Query("join", "SELECT count(*), sum(n) FROM {t} JOIN twenty_randoms ON random = k"),
        Query("first ten", "SELECT random FROM {t} ORDER BY random LIMIT 10"),
    )


def _beside(hot: Sequence[int]) -> str:
    """The text ``low AND high`` for a BETWEEN. `low` is a key that occurs only once in `hot`."""
    (own, *_) = (key for key in hot if hot.count(key) == 1)
    return f"{own} AND {own + 100}"
