from __future__ import annotations

import hashlib
import itertools
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sieve.errors import (
    ConflictError,
    CorruptError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)
from sieve.metadata.commit import last_of_dense, newest, newest_number, publish, read_version
from sieve.metadata.manifest import FORMAT, Manifest, render_manifest
from sieve.metadata.paths import version_file, versions_dir
from sieve.metadata.records import CreatedBy, VersionId
from sieve.metadata.transitions import Disable, Drop, SetOptions, next_version
from sieve.storage.interface import GoneError, join
from sieve.storage.local import LocalStore
from tests.unit.metadata.manifest_sample import SAMPLE, UUID

BY = CreatedBy("0.1.0", "4.1.4")
Step = Callable[[], None]


@dataclass(frozen=True, slots=True)
class FaultyStore(LocalStore):
    """A local store that runs a script's steps before and after its calls."""

    script: list[tuple[Step | None, Step | None]] = field(default_factory=list)
    reads: list[Step] = field(default_factory=list)

    def create(self, uri: str, data: bytes) -> bool:
        """Runs a step of the script, creates a file, and runs a second step."""
        before, after = self.script.pop(0) if self.script else (None, None)
        if before is not None:
            before()
        created = LocalStore.create(self, uri, data)
        if after is not None:
            after()
        return created

    def read(self, uri: str, limit: int = 1 << 30) -> bytes:
        """Reads a file after the next step of the script."""
        if self.reads:
            self.reads.pop(0)()
        return LocalStore.read(self, uri, limit)


def unknown() -> None:
    """Raises the error that stands for a lost reply."""
    raise UnknownOutcomeError("SIEVE_STORE_UNKNOWN_OUTCOME", "reply lost")


def refused() -> None:
    """Raises the error for a refused call; the call has no effect."""
    raise UnavailableError("SIEVE_STORE_UNAVAILABLE", "refused")


def new_id() -> VersionId:
    """Returns the identity of a new version."""
    return VersionId(secrets.token_hex(16))


def plan(base: Manifest | None) -> Manifest:
    """Plans the next version.

    The next version. The next version differs from the base version in the option `error`.
    """
    if base is None:
        return replace(SAMPLE, id=new_id())
    error = (base.next_options or base.options).error + 1
    return next_version(base, SetOptions(replace(base.options, error=error)), new_id(), BY)


@pytest.fixture
def index(tmp_path: Path) -> str:
    """The folder of an index that has no version yet."""
    folder = f"file:{tmp_path}/{UUID}"
    LocalStore().mkdirs(versions_dir(folder))
    return folder


def chain(index: str) -> list[Manifest]:
    """Reads all versions, oldest first.

    Asserts that no version number is missing, and that each version names the previous version as
    its parent.
    """
    names = {entry.name for entry in LocalStore().list(versions_dir(index))}
    assert names == {f"{number}.json" for number in range(1, len(names) + 1)}
    versions = [read_version(LocalStore(), index, n) for n in range(1, len(names) + 1)]
    for before, after in itertools.pairwise(versions):
        assert after.parent == before.id
    return versions


def test_no_version(index: str) -> None:
    """If an index folder has no versions or does not exist, there is no newest version."""
    assert newest(LocalStore(), index) is None
    assert newest(LocalStore(), index + "x", hint=5) is None


def test_versions_follow_each_other(index: str) -> None:
    """Each publish creates the next version; from any version, readers find the newest version."""
    base = None
    for number in range(1, 12):
        base = publish(LocalStore(), index, base, plan)
        assert base.version == number
    assert chain(index)[-1] == base
    for hint in (0, 1, 10, 11, 12, 1000):
        assert newest(LocalStore(), index, hint) == base
        assert newest_number(LocalStore(), index, hint) == 11


@pytest.mark.parametrize("known", [0, 1, 5])
def test_probing_is_exact_and_short(known: int) -> None:
    """For n versions, `newest` finds the last version with O(log n) probes."""
    for last in range(known, 200):
        probes: list[int] = []

        def exists(number: int, last: int = last, probes: list[int] = probes) -> bool:
            probes.append(number)
            return number <= last

        assert last_of_dense(exists, known) == last
        assert len(probes) <= 2 * (last - known + 1).bit_length()


def test_eight_writers(index: str) -> None:
    """If eight threads publish at the same time, all their versions exist, without a gap."""

    def write(_: int) -> list[VersionId]:
        made = []
        base = None
        for _ in range(6):
            base = publish(LocalStore(), index, base, plan, attempts=1000)
            made.append(base.id)
        return made

    with ThreadPoolExecutor(8) as pool:
        made = [version for versions in pool.map(write, range(8)) for version in versions]
    assert sorted(version.id for version in chain(index)) == sorted(made)
    assert len(made) == 48


def test_always_overtaken_writer_raises_a_conflict(index: str) -> None:
    """A writer raises a conflict and publishes nothing if others overtake it at each attempt."""
    first = publish(LocalStore(), index, None, plan)

    def late(base: Manifest | None) -> Manifest:
        mine = plan(base)
        publish(LocalStore(), index, base, plan)
        return mine

    with pytest.raises(ConflictError, match="3 versions"):
        publish(LocalStore(), index, first, late, attempts=3)
    assert len(chain(index)) == 4


def test_unchanged_plan_publishes_nothing(index: str) -> None:
    """If a plan returns its base version, `publish` publishes nothing."""
    base = publish(LocalStore(), index, None, plan)
    assert publish(LocalStore(), index, base, lambda newest: newest or SAMPLE) is base
    assert len(chain(index)) == 1


def test_overtaken_writer_plans_from_the_newest_version(index: str) -> None:
    """A writer that starts from an old version plans again from the newest one.

    Because the writer plans again, no writer's change is lost.
    """
    old = publish(LocalStore(), index, None, plan)
    for _ in range(3):
        publish(LocalStore(), index, old, plan)

    def disable(base: Manifest | None) -> Manifest:
        assert base is not None
        return next_version(base, Disable(), new_id(), BY)

    assert publish(LocalStore(), index, old, disable).version == 5
    assert chain(index)[-1].state == "disabled"
    assert chain(index)[-1].next_options == chain(index)[-2].next_options


def test_nothing_follows_a_tombstone(index: str) -> None:
    """If DROP overtakes a writer, the writer raises a conflict and publishes nothing."""
    base = publish(LocalStore(), index, None, plan)
    publish(LocalStore(), index, base, lambda _: next_version(base, Drop(), new_id(), BY))
    with pytest.raises(ConflictError, match="dropped in version 2"):
        publish(LocalStore(), index, base, plan)
    assert len(chain(index)) == 2


def test_reply_lost_after_the_effect(index: str) -> None:
    """If the reply to a successful create is lost, `publish` succeeds and creates one version."""
    store = FaultyStore(script=[(None, unknown)])
    assert publish(store, index, None, plan).version == 1
    assert len(chain(index)) == 1


def test_reply_lost_before_the_effect(index: str) -> None:
    """If a create has no effect and its reply is lost, `publish` succeeds with a second create."""
    store = FaultyStore(script=[(unknown, None), (unknown, None)])
    made = publish(store, index, None, plan)
    assert chain(index) == [made]


def test_repeated_create_finds_its_own_version(index: str) -> None:
    """If a create takes effect late, the repeated create finds the version of the first create.

    The writer recognises its own version by the id in the file.
    """
    mine = plan(None)

    def lands_late() -> None:
        LocalStore().create(version_file(index, 1), render_manifest(mine))

    store = FaultyStore(script=[(unknown, None), (lands_late, None)])
    assert publish(store, index, None, lambda _: mine) == mine
    assert chain(index) == [mine]


def test_lost_reply_is_resolved_below_a_newer_version(index: str) -> None:
    """After a lost reply, a writer finds its own version, even if another version follows."""

    def other_then_unknown() -> None:
        publish(LocalStore(), index, newest(LocalStore(), index), plan)
        unknown()

    store = FaultyStore(script=[(None, other_then_unknown)])
    assert publish(store, index, None, plan).version == 1
    assert len(chain(index)) == 2


def test_another_version_after_a_lost_reply_is_a_failure(index: str) -> None:
    """After a lost reply, a writer can find that another writer has published the same number.

    The writer then takes the next number.
    """

    def other_then_unknown() -> None:
        publish(LocalStore(), index, None, plan)
        unknown()

    store = FaultyStore(script=[(other_then_unknown, None)])
    assert publish(store, index, None, plan).version == 2
    assert len(chain(index)) == 2


@pytest.mark.parametrize("effect", [True, False])
def test_outcome_is_unknown_if_the_check_fails(index: str, effect: bool) -> None:
    """If a reply is lost and the writer cannot read the version, the outcome is unknown.

    If the outcome of a create is unknown, the writer deletes no file.
    """
    step = (None, unknown) if effect else (unknown, None)
    store = FaultyStore(script=[step], reads=[refused])
    with pytest.raises(UnknownOutcomeError, match="customer_sieve"):
        publish(store, index, None, plan)
    assert len(chain(index)) == int(effect)


def test_outcome_is_unknown_if_every_request_is_lost(index: str) -> None:
    """If the replies to all three attempts to create are lost, the outcome is unknown."""
    store = FaultyStore(script=[(unknown, None)] * 9)
    with pytest.raises(UnknownOutcomeError):
        publish(store, index, None, plan)
    assert len(store.script) == 9 - 3


def test_outcome_stays_unknown_after_a_later_refusal(index: str) -> None:
    """If a reply is lost and the store refuses the next create, the outcome is unknown.

    The create with the lost reply can still take effect.
    """
    with pytest.raises(UnknownOutcomeError):
        publish(FaultyStore(script=[(unknown, None), (refused, None)]), index, None, plan)


def test_refused_first_create_leaves_no_version(index: str) -> None:
    """If the store refuses the first create, `publish` fails, and there is no new version."""
    with pytest.raises(UnavailableError):
        publish(FaultyStore(script=[(refused, None)]), index, None, plan)
    assert chain(index) == []


def test_damaged_newest_version_is_reported(index: str) -> None:
    """If the newest version is damaged, readers and writers report the damage.

    Readers do not skip a damaged version. Writers do not take it for another writer's version.
    """
    LocalStore().create(version_file(index, 1), b"{}")
    with pytest.raises(CorruptError):
        newest(LocalStore(), index)
    with pytest.raises(CorruptError):
        publish(LocalStore(), index, None, plan)
    with pytest.raises(UnknownOutcomeError):
        publish(FaultyStore(script=[(unknown, None)]), index, None, plan)


def test_version_of_a_later_release_is_not_overwritten(index: str) -> None:
    """If a later release wrote the newest version, `publish` fails, and overwrites no file."""
    data = render_manifest(SAMPLE)
    newer = data.replace(b'"format":%d' % FORMAT, b'"format":%d' % (FORMAT + 1), 1)
    body = newer[: newer.rindex(b',"checksum"')] + b"}"
    seal = hashlib.sha256(body).hexdigest().encode()
    LocalStore().create(version_file(index, 1), body[:-1] + b',"checksum":"' + seal + b'"}')
    with pytest.raises(UnsupportedError):
        publish(LocalStore(), index, None, plan)


def test_copied_manifest_is_refused(index: str, tmp_path: Path) -> None:
    """Readers refuse a manifest that is a copy from another index or another version number."""
    made = publish(LocalStore(), index, None, plan)
    data = render_manifest(made)
    LocalStore().create(version_file(index, 2), data)
    with pytest.raises(CorruptError, match="copied"):
        newest(LocalStore(), index)
    copy = f"file:{tmp_path}/0b9f3c1e-0000-0000-0000-000000000000"
    LocalStore().mkdirs(versions_dir(copy))
    LocalStore().create(version_file(copy, 1), data)
    with pytest.raises(CorruptError, match="copied"):
        newest(LocalStore(), copy)
    with pytest.raises(ValueError, match="does not belong"):
        publish(LocalStore(), copy, None, plan)


def test_publishing_does_not_restore_a_deleted_folder(index: str) -> None:
    """If the index folder was deleted, `publish` fails, and does not create the folder again."""
    LocalStore().delete(index)
    with pytest.raises(GoneError):
        publish(LocalStore(), index, None, plan)
    assert not LocalStore().exists(index)


def test_versions_are_plain_files(index: str) -> None:
    """After `publish`, the index folder contains no new file except the manifest."""
    publish(LocalStore(), index, None, plan)
    assert [entry.name for entry in LocalStore().list(join(index, "versions"))] == ["1.json"]
    assert [entry.name for entry in LocalStore().list(index)] == ["versions"]
