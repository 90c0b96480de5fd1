"""Measures how many files the structures of a column read, and checks that no match is missed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.rivals.columns import Column
from bench.rivals.queries import KINDS, queries
from bench.rivals.structures import Structure, truth


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of one structure on one column.

    Attributes:
        column: name of the column.
        structure: name of the structure.
        budget: budget in percent; None for structures without a budget.
        bytes: size in percent of the column's bytes.
        files: mean number of files read by a query, for each kind of query.
        mean: mean of the numbers in `files`, over the kinds of query.
        megabytes: mean megabytes of the files read, over the kinds of query.
    """

    column: str
    structure: str
    budget: float | None
    bytes: float
    files: dict[str, float]
    mean: float
    megabytes: float


class Judge:
    """Runs queries against structures of one column."""

    def __init__(self, of: Column, count: int) -> None:
        self._column = of
        self._queries = queries(of, count)
        self.exact = truth(of)
        self._truth = {kind: self.exact.may_hold(*q) for kind, q in self._queries.items()}

    def least(self) -> float:
        """Mean number of files that hold a match, over the kinds of query."""
        return float(np.mean([answer.sum(axis=1).mean() for answer in self._truth.values()]))

    def measured(self, structure: Structure, budget: float | None) -> Measured:
        """Measures the files that a structure reads.

        Raises:
            SystemExit: the structure omits a file that holds a match.
        """
        files, read = {}, []
        for kind, (low, high) in self._queries.items():
            answer = structure.may_hold(low, high)
            missed = int(np.count_nonzero(self._truth[kind] & ~answer))
            if missed:
                raise SystemExit(
                    f"{structure.name} on {self._column.name} misses {missed} files: {kind}"
                )
            files[kind] = float(answer.sum(axis=1).mean())
            read.append(float((answer @ self._column.sizes).mean()))
        size = 100 * (structure.nbytes + self._column.encoder) / self._column.nbytes
        mean = float(np.mean([files[kind] for kind in KINDS]))
        megabytes = float(np.mean(read)) / 1e6
        return Measured(self._column.name, structure.name, budget, size, files, mean, megabytes)
