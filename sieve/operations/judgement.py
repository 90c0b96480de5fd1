"""Judges the benefit of an index from expected reads, which a build or ESTIMATE measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sieve.index_key import GRAM_BYTES, LONG_GRAM_BYTES, SUBSTRING, kind_of
from sieve.indexing.probes import files_read, least_read
from sieve.indexing.signatures import TEXT_BYTES
from sieve.metadata.manifest import Manifest
from sieve.metadata.records import SIGNED, VALUE, Expected
from sieve.workload.benefit import Benefit, benefit_of


def benefit(
    expected: Sequence[Expected],
    locations: int,
    bytes_total: int,
    *,
    kind: str | None = None,
    error: float = 0.0,
) -> Benefit | None:
    """Returns the benefit of an index with the given expected reads; None if the column has no key.

    The benefit of a substring index is never `Benefit.CANNOT`. The texts can consist almost wholly
    of sequences that are in all files, such as the digits of a UUID. Nevertheless, queries look for
    rare words.

    Args:
        kind: the kind of the index.
        error: the share by which the expected reads may be too low.
    """
    each = max(1.0, bytes_total / max(1, locations))
    reads, least = files_read(expected, each), least_read(expected, each)
    if "present" not in reads:
        return None
    read, needed = reads["present"], least.get(VALUE, least["present"])
    judged = benefit_of(read * (1 + error), needed * (1 + error), locations)
    return Benefit.SCATTERED if kind == SUBSTRING and judged is Benefit.CANNOT else judged


def benefit_of_version(manifest: Manifest) -> Benefit | None:
    """The benefit of an index, judged by one of its versions."""
    stats = manifest.stats
    expected = expected_of_version(manifest)
    kind = kind_of(manifest.column)
    return benefit(expected, stats.ranges_total, stats.bytes_total, kind=kind)


def expected_of_version(manifest: Manifest) -> tuple[Expected, ...]:
    """The expected reads of queries with a version.

    For a substring index, the queries are for texts of `TEXT_BYTES` bytes.
    """
    stats = manifest.stats
    return of_queries(
        stats.expected, kind_of(manifest.column), stats.ranges_total, stats.bytes_total
    )


def of_queries(
    expected: tuple[Expected, ...], kind: str | None, locations: float, bytes_total: float
) -> tuple[Expected, ...]:
    """The expected reads of queries, derived from the expected reads of queries for one key.

    Only a query with a substring index looks up several keys.

    Args:
        expected: the expected reads of queries for one key.
        kind: the kind of the index.
    """
    if kind != SUBSTRING:
        return expected
    return of_text(expected, TEXT_BYTES, locations, bytes_total)


def of_text(
    expected: Sequence[Expected], length: int, locations: float, bytes_total: float
) -> tuple[Expected, ...]:
    """The expected reads of queries for a text that occurs in the table; empty without keys.

    The function assumes that the text's keys occur independently of each other, and that the bits
    of its signature do.

    Args:
        expected: the expected reads of a query for one key, which is a sequence of `GRAM_BYTES`
            bytes, and for one bit of a signature.
        length: the length of the text in bytes, at least `GRAM_BYTES`.
    """
    by_kind = {one.kind: one for one in expected}
    one, signed = by_kind.get("present"), by_kind.get(SIGNED)
    if one is None:
        return ()
    bits = length - LONG_GRAM_BYTES + 1

    def of_all(part: float, whole: float) -> float:
        one_location = min(part, whole / max(1.0, locations))
        if signed is None or bits < 1:
            share = (part / max(1.0, whole)) ** (length - GRAM_BYTES + 1)
        else:
            # An index has signatures only if the keys of a text tell little.
            share = (signed.files / max(1.0, locations)) ** bits
        return max(one_location, whole * share)

    return (
        replace(
            one,
            files=of_all(one.files, locations),
            exact=of_all(one.exact, locations),
            bytes=of_all(one.bytes, bytes_total),
            exact_bytes=of_all(one.exact_bytes, bytes_total),
        ),
    )
