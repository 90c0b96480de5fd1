"""Building a run with Spark: the executors read, cut, weigh and write; the driver sees no key.

The default build reads the column twice: a sample first, which tells what gaps between keys are
worth, then all of it, cut at the worthwhile gaps of each location where it is read. What travels is
a few times the budget, whatever the table's size. The seed's shape needs every key instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from sieve.build.pricing import run_maker
from sieve.build.probes import expectations, make_probes, map_may_pay, mean_read
from sieve.build.reading import read_cuts
from sieve.build.survey import Survey, survey
from sieve.build.writing import write_within
from sieve.cache import Cache
from sieve.claims import discard_run
from sieve.errors import InvalidInputError, SieveError
from sieve.keys import Encoder
from sieve.options import IndexOptions
from sieve.runs import Run
from sieve.store import Store
from sieve.tables.catalog import Column
from sieve.types import Expected, RunRef

Counts = npt.NDArray[np.int64]

_HELD = 8 << 20
"""Bytes of the new run in memory while it is measured, however large it is."""


@dataclass(frozen=True, slots=True, eq=False)
class BuiltRun:
    """A run and what its build saw.

    Attributes:
        run: None where no location has a key.
        rows, nulls, nans: int64[n] a location; rows is -1 for a location that proves nothing.
        expected: what queries are expected to read.
        width: mean bytes of a value.
    """

    run: RunRef | None
    rows: Counts
    nulls: Counts
    nans: Counts
    expected: tuple[Expected, ...]
    width: float


@dataclass(frozen=True, slots=True)
class _Made:
    run: RunRef
    expected: tuple[Expected, ...]


def build_run(
    frame: DataFrame,
    column: Column,
    sizes: Sequence[int],
    options: IndexOptions,
    store: Store,
    index_dir: str,
    *,
    counted: bool,
    say: Callable[[str], None],
    encoder: Encoder | None = None,
    added: npt.NDArray[np.bool_] | None = None,
) -> BuiltRun:
    """Read a column of some files and write its run.

    Args:
        frame: all rows of some files, read as a query reads them, with their `LOCATION`.
        column: the column to index.
        sizes: bytes of each file.
        options: shape and budget.
        store: where the index lies.
        index_dir: the index's folder.
        counted: compare the rows seen of each file with a count that reads no column; for formats
            whose metadata tell it. Files that differ prove nothing.
        say: told what the next job does, for its label.
        encoder: for the values, where runs that stand beside this one have settled it.
        added: bool[n], files of which only a part is read, that may be without rows: the other part
            is in other runs, and where there are such files no map is chosen.

    Raises:
        Py4JJavaError: a file cannot be read; names it.
    """
    asked = survey(frame, column, sizes, counted=counted, say=say, encoder=encoder)
    in_parts = np.zeros(len(sizes), np.bool_) if added is None else added
    probes = make_probes(asked.sample)
    say("reading")
    with read_cuts(asked, options, probes, in_parts) as (cuts, seen):

        def build(shape: str) -> _Made | None:
            wanted = replace(options, shape=shape)
            with run_maker(cuts, seen, asked, wanted, say) as make:
                if make is None:
                    return None
                say("writing")
                run = write_within(make, asked, wanted, store, index_dir)
            with _removed_on_failure(store, index_dir, run):
                opened = Run(store, index_dir, run, Cache(_HELD))
                told = expectations(probes, opened, seen.hits, seen.least, seen.greatest)
                return _Made(run, tuple(told))

        made = build(options.shape)
        if made is not None and options.shape == "auto" and not in_parts.any():
            made = _with_map_if_better(made, build, asked, options, store, index_dir)
    rows = np.where(seen.partial, -1, seen.rows)
    run, told = (None, ()) if made is None else (made.run, made.expected)
    return BuiltRun(run, rows, seen.nulls, seen.nans, told, asked.sample.width)


def _with_map_if_better(
    made: _Made,
    build: Callable[[str], _Made | None],
    asked: Survey,
    options: IndexOptions,
    store: Store,
    index_dir: str,
) -> _Made:
    """The run, or one with a map where the budget pays for it and it reads fewer files."""
    exact, budget = asked.sample.encoder.exact, asked.budget(options)
    if not map_may_pay(made.expected, made.run.keys, asked.n_files, budget, exact=exact):
        return made
    with _removed_on_failure(store, index_dir, made.run):
        try:
            other = build("map")
        except InvalidInputError:
            # The budget is too small after all: keys share their locations.
            return made
    assert other is not None
    better, worse = sorted((made, other), key=lambda one: mean_read(one.expected))
    with _removed_on_failure(store, index_dir, better.run):
        discard_run(store, index_dir, worse.run.id)
    return better


@contextlib.contextmanager
def _removed_on_failure(store: Store, index_dir: str, run: RunRef) -> Iterator[None]:
    """Nothing refers to a run before its version is out, so whoever fails removes it."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(SieveError):
            discard_run(store, index_dir, run.id)
        raise
