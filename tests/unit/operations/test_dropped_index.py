from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sieve.errors import CorruptError, UnavailableError
from sieve.metadata.records import IndexUuid
from sieve.metadata.registration import Registration, property_key, render_registration
from sieve.operations.dropped_index import leave_out_if_dropped
from sieve.operations.registered_index import Gone, Malformed

OWN = Registration(IndexUuid("11111111-2222-3333-4444-555555555555"), ("v",), "file:/r")
OTHER = Registration(IndexUuid("99999999-2222-3333-4444-555555555555"), ("v",), "file:/r")
INDEX = Gone("v_sieve", OWN, "no folder", None)


def end(now: Registration | str | None, index: Any = INDEX, *, every: bool = True) -> None:
    """Ends a statement that has missed a file, on a table with the given registration."""

    def refresh_registry() -> dict[str, str]:
        if now == "no answer":
            raise UnavailableError("SIEVE_STORE_UNAVAILABLE", "no answer")
        if now is None:
            return {}
        text = now if isinstance(now, str) else render_registration(now)
        return {property_key(index.name): text}

    table: Any = SimpleNamespace(refresh_registry=refresh_registry)
    with leave_out_if_dropped(index, table, every=every):
        raise CorruptError("SIEVE_INDEX_CORRUPT", "a file is missing")


@pytest.mark.parametrize("now", [None, OTHER])
def test_dropped_index_is_left_out(now: Registration | None) -> None:
    """A statement about all indexes succeeds even if one index was dropped or created again."""
    end(now)
    with pytest.raises(CorruptError):
        end(now, every=False)


@pytest.mark.parametrize("now", [OWN, "no answer"])
def test_other_errors_remain(now: Registration | str) -> None:
    """A statement fails if the index is still registered, or if the metastore does not answer."""
    with pytest.raises(CorruptError):
        end(now)


def test_malformed_registration_remains_an_error() -> None:
    """A malformed registration does not mean that the index was dropped."""
    with pytest.raises(CorruptError):
        end("{", Malformed("v_sieve", OWN, "malformed", None))
