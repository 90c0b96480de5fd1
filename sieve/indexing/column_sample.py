"""Column sample: some rows of a column, from which a build estimates keys, widths and rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sieve.arrays.dtypes import CodeIntervals, Codes, Hashes, Ordinals
from sieve.encoding.encoder import Encoder
from sieve.encoding.hashing import hash_codes
from sieve.indexing.domain_sample import DomainSample, has_only_heavy_keys, windows
from sieve.indexing.fit_encoder import FRONT, fit_encoder
from sieve.indexing.local_rows import fetched
from sieve.indexing.value_columns import leading_bytes
from sieve.indexing.value_spread import value_spread
from sieve.segments.query_model import QueryModel
from sieve.tables.column import Column
from sieve.tables.table import LOCATION

WANTED = 40_000
"""The number of rows in a sample. If 1 % of all rows have some property, the sample estimates this
share with a relative error of about 5 %."""
# Text files have no row counts, so an assumed minimum size per row limits the number of rows.
_BYTES_PER_ROW = 20
_WIDTHS = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "date": 4, "float": 4}


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A sample of a column, and estimates from it.

    Attributes:
        encoder: maps the column's values to key codes.
        query_model: the distribution of the keys; None if the sample contains no key.
        codes: int64[n], key code of each sampled value.
        hashes: uint64[n], hash of each sampled value.
        rows: number of rows of the column, counted or estimated.
        width: mean size of a value in bytes.
        shown: number of rows in the windows of `domain_sample`; equal to `rows` if there are no
            windows.
        spread: mean number of locations that contain a looked-up value; 0 if key codes distinguish
            all values.
        scattered: among all pairs of neighbouring sampled keys, the share of pairs whose keys are
            in different locations. The share is about 0 if each location has its own range of keys.
        domain_sample: the windows of the domain to which `query_model`, `codes` and `hashes` are
            restricted; None for the whole domain.
        by_key: true if queries look up each distinct key with the same probability. If `by_key` is
            false, a key's probability grows with its number of rows. `by_key` is true for indexes
            that can have several values per row. Nobody looks up the most frequent values of arrays
            and texts, such as the text ``http``.
        drawn: the sampled rows if the sample consists of all rows; otherwise None. The columns of
            `drawn` are ``v`` (the value or its leading bytes), `LOCATION`, and the value's hash.
    """

    encoder: Encoder
    query_model: QueryModel | None
    codes: Codes
    hashes: Hashes
    rows: int
    width: float
    shown: int
    domain_sample: DomainSample | None = None
    scattered: float = 0.0
    spread: float = 0.0
    by_key: bool = False
    drawn: pa.Table | None = None

    @property
    def share(self) -> float:
        """The share of single-key queries whose key is in the windows of the domain."""
        return 1.0 if self.domain_sample is None else self.domain_sample.share


def zoomed(sample: Sample, share: float, asked: CodeIntervals) -> Sample:
    """Restricts a sample to windows of the domain that contain a given share of the keys.

    For a column of 5 million scattered ids, ESTIMATE takes 19 s with windows; without windows,
    ESTIMATE had not ended after 250 s.

    Args:
        sample: a sample of the whole domain.
        share: the share of the keys, above 0. If ``share`` is 1 or more, the function returns the
            whole sample.
        asked: int64[k, 2], the intervals of key codes that a query asks for; the windows include
            both ends of each interval.
    """
    if sample.query_model is None or share >= 1 or has_only_heavy_keys(sample.query_model):
        return sample
    domain_sample = windows(sample.query_model, share, asked)
    inside = np.flatnonzero(domain_sample.within(sample.codes))
    query_model = domain_sample.of_mass(sample.query_model)
    if query_model is None:
        return sample
    # Draws rows again by weight, so that all later steps can draw rows without weights.
    weights = domain_sample.rates(sample.query_model, sample.codes[inside])
    drawn = np.random.default_rng(3).choice(inside, len(inside), p=weights / weights.sum())
    return Sample(
        sample.encoder,
        query_model,
        domain_sample.codes(sample.codes[drawn]),
        sample.hashes[drawn],
        sample.rows,
        sample.width,
        int(sample.rows * len(inside) / len(sample.codes)),
        domain_sample,
        sample.scattered,
        sample.spread,
        sample.by_key,
    )


def take_sample(
    values: DataFrame,
    column: Column,
    counted: int | None,
    size: int,
    encoder: Encoder | None = None,
) -> Sample:
    """Draws a uniform random sample of a column's rows from all files.

    Args:
        values: all rows, with the columns ``v`` (the indexed column) and `LOCATION`.
        counted: number of rows of the column; None if the format's metadata has no row counts.
        encoder: the encoder of the values; None to choose it by the sample.
    """
    expected = max(1, counted if counted is not None else size // _BYTES_PER_ROW)
    share = min(1.0, WANTED / expected)
    # If the caller gives no seed, Spark 4.1 draws different rows each time.
    drawn = values.sample(fraction=share, seed=1) if share < 1 else values
    text, by_key = column.any_width, column.kind is not None
    length = sf.octet_length("v") if text else sf.lit(None).cast("int")
    front = leading_bytes(FRONT) if text else sf.col("v")
    shown = drawn.select(
        front.alias("v"), length.alias("bytes"), sf.xxhash64("v").alias("hash"), LOCATION
    )
    batches = fetched(shown)
    if not batches:
        plain, none = encoder or Encoder.for_type(column.type), np.empty(0, np.int64)
        rows = counted or 0
        return Sample(plain, None, none, none.view(np.uint64), rows, _width(column.type), rows)
    table = pa.Table.from_batches(batches)
    rows = counted if counted is not None else int(table.num_rows / share)
    width = (pc.mean(table["bytes"]).as_py() or 0.0) if text else _width(column.type)
    if encoder is None:
        encoder = fit_encoder(column.type, table["v"], rows, int(rows * width))
    encoded = encoder.of_bytes.encode(table["v"])
    keys = encoded.valid & ~encoded.nan
    codes = encoded.codes[keys]
    given = table["hash"].to_numpy()[keys].view(np.uint64)
    places = table[LOCATION].to_numpy()[keys]
    return Sample(
        encoder,
        QueryModel.of_sample(codes) if len(codes) else None,
        codes,
        hash_codes(codes) if encoder.exact else given,
        rows,
        width,
        rows,
        scattered=_scattered(codes, places),
        spread=0.0 if encoder.exact else value_spread(given, places, share, by_key=by_key),
        by_key=by_key,
        drawn=None if share < 1 else _hashed(table),
    )


def _hashed(table: pa.Table) -> pa.Table:
    """Returns all rows of a column with the hash of each value; the hash of a NULL is NULL."""
    hashes = pc.if_else(pc.is_valid(table["v"]), table["hash"], None)
    return table.select(["v", LOCATION]).append_column("hash", hashes)


def _scattered(codes: Codes, locations: Ordinals) -> float:
    """Returns the share of neighbouring distinct keys that are in different locations."""
    codes, first = np.unique(codes, return_index=True)
    of_each = locations[first]
    return float(np.mean(of_each[1:] != of_each[:-1])) if len(codes) > 1 else 0.0


def _width(type_name: str) -> int:
    """Returns how many bytes each value of a fixed-width type has."""
    if type_name.startswith("decimal"):
        return 8 if int(type_name[8:].partition(",")[0]) <= 18 else 16
    return _WIDTHS.get(type_name, 8)
