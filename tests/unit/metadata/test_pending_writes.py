"""Tests pending writes: each names a run or a list part that is in no version yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from sieve.metadata.paths import locations_file, pending_writes_dir, run_dir
from sieve.metadata.pending_writes import (
    discard_locations,
    discard_run,
    note_file_list,
    note_run,
    pending_writes,
)
from sieve.metadata.records import RunId
from sieve.storage.interface import join
from sieve.storage.local import LocalStore
from tests.fake_spark import SeamStore

RUN = RunId("ab" * 16)
LIST = f"{'cd' * 16}.parquet"


class Killed(BaseException):
    """Raised to end a writer at this point, as if its process were killed."""


@pytest.mark.parametrize("kind", ["run", "list"])
@pytest.mark.parametrize("death", [0, 1, 2, 3])
def test_pending_write_names_the_rest_of_a_discarded_file(
    tmp_path: Path, kind: str, death: int
) -> None:
    """If a writer dies while it deletes a run or list part, a pending write names the rest."""
    home, store = f"file:{tmp_path}", LocalStore()
    target = run_dir(home, RUN) if kind == "run" else locations_file(home, LIST)
    for folder in (pending_writes_dir(home), run_dir(home, RUN), f"{home}/locations"):
        store.mkdirs(folder)
    store.create(join(run_dir(home, RUN), "part-00000.parquet"), b"x")
    store.create(locations_file(home, LIST), b"x")
    note_run(store, home, RUN)
    note_file_list(store, home, LIST)
    calls: list[str] = []

    def seam(what: str) -> None:
        calls.append(what)
        if len(calls) > death:
            raise Killed

    mortal = SeamStore(seam)
    with pytest.raises(Killed):
        discard_run(mortal, home, RUN) if kind == "run" else discard_locations(mortal, home, LIST)
    there = Path(target.removeprefix("file:")).exists()
    claimed = target in {pending.target for pending in pending_writes(store, home)}
    assert claimed >= there
    assert (there, claimed) == (death < 1, death < 3)


def test_files_with_other_names_are_no_pending_writes(tmp_path: Path) -> None:
    """Files with other names are not read as pending writes, and do not hide pending writes."""
    home, store = f"file:{tmp_path}", LocalStore()
    assert list(pending_writes(store, home)) == []
    store.mkdirs(pending_writes_dir(home))
    for name in (".crc", "run-", "zz"):
        store.create(join(pending_writes_dir(home), name), b"")
    note_run(store, home, RUN)
    note_file_list(store, home, LIST)
    targets = sorted(pending.target for pending in pending_writes(store, home))
    assert targets == sorted([run_dir(home, RUN), locations_file(home, LIST)])
