"""Measures how many files queries read with a structure, and checks that no match is missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.rivals.columns import Column
from bench.rivals.queries import KINDS, queries
from bench.rivals.structures import Structure, truth


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of one structure for one column.

    Attributes:
        column: the column's name.
        structure: the structure's name.
        budget: budget in percent of the column's bytes. None for structures without a budget.
        bytes: the structure's size in percent of the column's bytes.
        files: for each kind of query, the mean number of files that a query reads.
        mean: mean of the numbers in `files`.
        megabytes: mean megabytes that a query reads. Each kind of query has the same weight.
    """

    column: str
    structure: str
    budget: float | None
    bytes: float
    files: dict[str, float]
    mean: float
    megabytes: float


class Judge:
    """Measures structures for one column."""

    def __init__(self, of: Column, count: int) -> None:
        self._column = of
        self._queries = queries(of, count)
        self.exact = truth(of)
        self._truth = {kind: self.exact.may_hold(*q) for kind, q in self._queries.items()}

    def least(self) -> float:
        """Mean number of files with a match. Each kind of query has the same weight."""
        return float(np.mean([answer.sum(axis=1).mean() for answer in self._truth.values()]))

    def measured(self, structure: Structure, budget: float | None) -> Measured:
        """Measures the files that queries read with a structure.

        Raises:
            SystemExit: the structure omits a file with a match.
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
