"""A version of an index in memory, as scans ask it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sieve.errors import UnsupportedError
from sieve.keys import Encoder
from sieve.layout import locations_file
from sieve.locations import Locations, parse_locations
from sieve.lookup import Run
from sieve.manifest import Manifest
from sieve.requirements import Requirement
from sieve.runs import read_run, verified
from sieve.store import Store

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class OpenIndex:
    """One version of an index, ready for look-ups."""

    manifest: Manifest
    locations: Locations
    runs: tuple[tuple[Encoder, Run], ...]

    @property
    def encoder(self) -> Encoder:
        """How the index codes the values of its column."""
        return self.runs[0][0] if self.runs else Encoder(self.manifest.type)

    @property
    def null_proof(self) -> bool:
        """Whether NULL counts hold for every query."""
        return self.manifest.null_proof

    def keep(self, requirement: Requirement) -> Flags:
        """bool[n]: which of the version's locations may hold a value that is asked for."""
        keep = np.zeros(len(self.locations.paths), np.bool_)
        for _, run in self.runs:
            found = run.locations_in(requirement.intervals)
            if run.maps and requirement.hashes is not None:
                found &= run.locations_of(requirement.hashes)
            keep |= found
        if requirement.null:
            keep |= self.locations.nulls > 0
        if requirement.nan:
            keep |= self.locations.nans > 0
        return keep


def open_version(store: Store, index_dir: str, manifest: Manifest) -> OpenIndex:
    """Load what a manifest refers to.

    Raises:
        CorruptError, UnavailableError: a file is damaged, gone or out of reach.
        UnsupportedError: a later release wrote it.
    """
    ref = manifest.locations
    data = verified(store, locations_file(index_dir, ref.file.name), ref.file)
    locations = parse_locations(data, manifest.roots, ref.count)
    runs = tuple(
        (Encoder.from_json(dict(run.encoder)), read_run(store, index_dir, run, ref.count))
        for run in manifest.runs
    )
    if len({encoder for encoder, _ in runs}) > 1:
        raise UnsupportedError(
            "SIEVE_VERSION_TOO_NEW",
            f"version {manifest.version} of index {manifest.name} codes its runs in different "
            "ways, which this release cannot look up; upgrade Sieve",
        )
    return OpenIndex(manifest, locations, runs)
