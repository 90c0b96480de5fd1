"""Tests fingerprints of readers. The driver sends each fingerprint once, then only its hash."""

from __future__ import annotations

from sql_ext.frontend.fingerprints import _MAX_FINGERPRINTS, Fingerprints

ONE, OTHER = {"format": "parquet"}, {"format": "orc"}


def test_parts_are_sent_once() -> None:
    """If a hash is unknown and its fingerprint was not sent, `of` returns None."""
    known = Fingerprints()
    assert known.of(["a"], {}) is None
    assert known.of(["a"], {"a": ONE}) == (ONE,)
    assert known.of(["a"], {}) == (ONE,)
    assert known.of(["a", "b"], {}) is None
    assert known.of(["b", "a"], {"b": OTHER}) == (OTHER, ONE)


def test_least_recently_used_fingerprint_is_forgotten() -> None:
    """If there are too many fingerprints, the least recently used fingerprint is removed."""
    known = Fingerprints()
    known.of(["first"], {"first": ONE})
    for k in range(_MAX_FINGERPRINTS - 1):
        known.of([str(k)], {str(k): OTHER})
    assert known.of(["first"], {}) == (ONE,)
    known.of(["last"], {"last": OTHER})
    assert known.of(["0"], {}) is None
    assert known.of(["first", "last"], {}) == (ONE, OTHER)
