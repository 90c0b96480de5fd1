"""Judgement of an index by the reads that a build or an estimate expects."""

from __future__ import annotations

from collections.abc import Sequence

from sieve.encoding.encoder import Encoder
from sieve.indexing.probes import files_read, least_read
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import VALUE, Expected
from sieve.workload.benefit import Benefit, benefit_of


def benefit(
    expected: Sequence[Expected], locations: int, bytes_total: int, type_name: str
) -> Benefit | None:
    """The benefit of an index; None if the column has no key.

    Args:
        expected: the expected reads; without bytes, locations count instead.
        locations: of the table.
        bytes_total: of these; 0 if not known.
        type_name: of the column.
    """
    each = max(1.0, bytes_total / max(1, locations))
    reads, least = files_read(expected, each), least_read(expected, each)
    if "present" not in reads:
        return None
    # An earlier release did not measure which locations hold a value whose code is not its own.
    vague = VALUE not in least and not Encoder.for_type(type_name).exact
    bound = 0.0 if vague else least.get(VALUE, least["present"])
    return benefit_of(reads["present"], bound, locations)


def benefit_of_version(manifest: Manifest) -> Benefit | None:
    """The benefit of the index of a version."""
    stats = manifest.stats
    return benefit(stats.expected, stats.locations_total, stats.bytes_total, manifest.type)
