"""The states of an index: their names, their errors, and whether the index's store is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from sieve.errors import (
    CorruptError,
    DeniedError,
    InvalidInputError,
    RootRefusedError,
    SieveError,
    UnavailableError,
    UnsupportedError,
)
from sieve.metadata.manifest import Manifest
from sieve.metadata.registration import Registration
from sieve.operations import registered_index
from sieve.operations.registered_index import (
    Disabled,
    Failed,
    Gone,
    HalfDropped,
    Ready,
    RegisteredIndex,
    RootRefused,
    Unreachable,
    check_reachable,
    is_gone,
    open_index,
    select,
    store_of,
    usable,
)
from sieve.storage.interface import GoneError
from sieve.storage.local import LocalStore
from tests.unit.metadata.manifest_sample import SAMPLE

REGISTRATION = Registration(SAMPLE.index, ("customer", "id"), "file:/r")
OTHER = replace(SAMPLE.table, table="other", location="file:/w/other")


@dataclass(frozen=True)
class Case:
    """The content of an index folder, and the resulting state of the index.

    Attributes:
        found: the newest version, None, or the error of reading it.
        kind: the class of the state.
        word: the state's name in statements.
        error: the class and a part of the message of the error that operations on a version raise.
    """

    found: Manifest | SieveError | None
    kind: type[RegisteredIndex]
    word: str
    error: tuple[type[SieveError], str] | None = None


CASES = [
    Case(SAMPLE, Ready, "ready"),
    Case(replace(SAMPLE, state="disabled"), Disabled, "disabled"),
    Case(
        replace(SAMPLE, state="dropped"), HalfDropped, "gone",
        (UnsupportedError, "index v is gone: it was dropped; DROP SIEVE INDEX v and create it"),
    ),
    Case(
        replace(SAMPLE, state="dropped", table=OTHER), Gone, "gone",
        (UnsupportedError, "it was dropped"),
    ),
    Case(
        replace(SAMPLE, table=OTHER), Gone, "gone",
        (UnsupportedError, "it belongs to table sales.other at file:/w/other; DROP"),
    ),
    Case(None, Gone, "gone", (UnsupportedError, "holds no version")),
    Case(GoneError("SIEVE_GONE", "no such folder"), Gone, "gone",
         (UnsupportedError, "no such folder")),
    Case(
        UnavailableError("SIEVE_STORE_UNAVAILABLE", "no answer"), Unreachable, "failed",
        (UnavailableError, "index v cannot be read now: no answer; run the statement again"),
    ),
    Case(
        DeniedError("SIEVE_DENIED", "not yours"), Unreachable, "failed",
        (DeniedError, "index v cannot be used: not yours"),
    ),
    Case(
        CorruptError("SIEVE_MANIFEST_CORRUPT", "cut short"), Failed, "failed",
        (UnsupportedError, "index v is failed: cut short; DROP SIEVE INDEX v"),
    ),
    Case(
        UnsupportedError("SIEVE_VERSION_TOO_NEW", "format 9"), Failed, "failed",
        (UnsupportedError, "format 9"),
    ),
]  # fmt: skip


def opened(
    monkeypatch: pytest.MonkeyPatch,
    found: Manifest | SieveError | None,
    check_root: Callable[[str, str], None] = lambda *_: None,
) -> RegisteredIndex:
    """Opens an index with the given newest version, or with an unreadable version."""

    def newest(*_: object) -> Manifest | None:
        if isinstance(found, SieveError):
            raise found
        return found

    monkeypatch.setattr(registered_index, "newest", newest)
    environment: Any = SimpleNamespace(check_root=check_root, open_store=lambda _: LocalStore())
    return open_index("v", REGISTRATION, SAMPLE.table, environment)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind.__name__} {case.found!s:.20}")
def test_each_state_has_a_version_or_an_error(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    """Each state has a name, and either a usable version or an error with the reason."""
    index = opened(monkeypatch, case.found)
    assert type(index) is case.kind
    assert index.state == case.word
    assert index.directory == f"file:/r/{SAMPLE.index}"
    assert is_gone(index) == (case.word == "gone")
    assert isinstance(store_of(index), LocalStore)
    if case.error is None:
        assert usable(index) is index
        assert usable(index).manifest is case.found
        check_reachable(index)
        return
    kind, words = case.error
    with pytest.raises(SieveError, match=words) as caught:
        usable(index)
    assert type(caught.value) is kind
    if case.kind is Unreachable:
        assert isinstance(case.found, SieveError)
        assert caught.value.condition == case.found.condition
        with pytest.raises(UnavailableError):
            check_reachable(index)
    else:
        assert caught.value.condition == "SIEVE_INDEX_NOT_USABLE"
        check_reachable(index)


def test_a_refused_root_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sieve does not open an index in a refused root, and the error suggests no statement."""

    def refuse(*_: str) -> None:
        raise RootRefusedError("SIEVE_ROOT_REFUSED", "not below spark.sieve.roots")

    index = opened(monkeypatch, SAMPLE, refuse)
    assert isinstance(index, RootRefused)
    for ask in (usable, store_of):
        with pytest.raises(UnsupportedError) as caught:
            ask(index)
        assert str(caught.value).endswith("index v is root-refused: not below spark.sieve.roots")


def test_indexes_are_selected_by_name_or_column() -> None:
    """`select` finds an index by its name or its column, in any letter case.

    If a name is unknown, the error suggests similar names.
    """
    one = Ready("a_sieve", replace(REGISTRATION, column=("A",)), LocalStore(), SAMPLE)
    two = Gone("b_sieve", replace(REGISTRATION, column=("b", "C")), "a problem", None)
    indexes: dict[str, RegisteredIndex] = {"a_sieve": one, "b_sieve": two}
    assert select(indexes, "t", None, None) == [one, two]
    assert select(indexes, "t", "A_Sieve", None) == [one]
    assert select(indexes, "t", None, ["B", "c"]) == [two]
    for name, words in (("a_siev", r"did you mean a_sieve"), ("zz", "it has a_sieve, b_sieve")):
        with pytest.raises(InvalidInputError, match=words):
            select(indexes, "t", name, None)
    many = {f"a{k}_sieve": one for k in range(4)}
    with pytest.raises(InvalidInputError, match=r"did you mean \w+, \w+, \w+\?$"):
        select(many, "t", "a_sieve", None)
    with pytest.raises(InvalidInputError, match="it has no index"):
        select({}, "t", "a", None)
    with pytest.raises(InvalidInputError, match=r"no index on b\.d"):
        select(indexes, "t", None, ["b", "d"])
