"""Sieve refuses or survives hostile metadata, and opens no file outside the warehouse."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from crash_scenarios import prepared

from sieve.errors import SieveError
from sieve.metadata.file_list import parse_locations
from sieve.metadata.manifest import parse_manifest
from sieve.metadata.registration import parse_registration
from sql_ext.statements.parser import parse_statement
from tests.fake_scan import scan
from tests.fake_spark import Session, Warehouse, without_spark

SHORT, MORE, LONG = 7_000, 20_000, 1_000_000

WATCHED = ("open", "os.", "subprocess.", "socket.", "shutil.", "import", "exec", "ctypes.")
_trails: list[list[tuple[str, tuple[Any, ...]]]] = []
_earlier_threads: set[int] = set()


def _noted(event: str, arguments: tuple[Any, ...]) -> None:
    if _trails and event.startswith(WATCHED) and threading.get_ident() not in _earlier_threads:
        _trails[-1].append((event, arguments))


@pytest.fixture(scope="module", autouse=True)
def hook() -> None:
    """Adds an audit hook to the Python interpreter; the hook can be turned off, but not removed."""
    sys.addaudithook(_noted)


@pytest.fixture(autouse=True)
def plain() -> Iterator[None]:
    """Runs each test with `tests.fake_spark` instead of Spark."""
    with without_spark():
        yield


@contextmanager
def confined(folder: Path) -> Iterator[None]:
    """Checks that the block opens no file outside the given folder.

    Also checks that the block starts no process, opens no socket and loads no code. The check
    ignores threads that started before the block, because a server of an earlier test may write a
    traceback.
    """
    earlier = {it.ident for it in threading.enumerate() if it.ident is not None}
    _earlier_threads.update(earlier - {threading.get_ident()})
    _trails.append([])
    try:
        yield
    finally:
        trail = _trails.pop()
        _earlier_threads.clear()
    for event, arguments in trail:
        assert event.startswith(("open", "os.", "shutil.")), (event, arguments)
        for argument in arguments[:2]:
            if isinstance(argument, str | os.PathLike) and Path(argument).is_absolute():
                inside = Path(argument).resolve().is_relative_to(folder)
                assert inside or argument == os.devnull, (event, arguments)


def test_confined_checks_each_thread_of_the_block(tmp_path: Path) -> None:
    """The check finds a file that the block opens outside the folder.

    Threads that started before the block may open a file outside the folder.
    """
    go, done = threading.Event(), threading.Event()

    def earlier() -> None:
        go.wait()
        Path(__file__).open().close()
        done.set()

    threading.Thread(target=earlier).start()
    with confined(tmp_path):
        go.set()
        done.wait()
    with pytest.raises(AssertionError), confined(tmp_path):
        earlier()
    later = threading.Thread(target=earlier)
    with pytest.raises(AssertionError), confined(tmp_path):  # noqa: PT012
        later.start()
        later.join()


def registration(warehouse: Warehouse) -> dict[str, Any]:
    """The index's registration, parsed from the table's properties."""
    told: dict[str, Any] = json.loads(warehouse.properties("t")["sieve.index.id_sieve"])
    return told


def deep(levels: int) -> str:
    """A JSON array that is nested ``levels`` levels deep."""
    return "[" * levels + "]" * levels


REGISTRATIONS: dict[str, Callable[[dict[str, Any], Path], str]] = {
    "way out": lambda it, _: json.dumps(it | {"root": it["root"] + "/../../elsewhere"}),
    "another folder": lambda it, outside: json.dumps(it | {"root": f"file:{outside}"}),
    "another host": lambda it, _: json.dumps(it | {"root": "http://127.0.0.1:1/x"}),
    "a scheme": lambda it, _: json.dumps(it | {"root": "jdbc:derby:/x;create=true"}),
    "NUL": lambda it, _: json.dumps(it | {"root": it["root"] + "\0"}),
    "uuid that leads out": lambda it, _: json.dumps(it | {"uuid": "../../../etc"}),
    "another uuid": lambda it, _: json.dumps(it | {"uuid": "0" * 8 + "-0000" * 3 + "-" + "0" * 12}),
    "names": lambda it, _: json.dumps(it | {"column": ["id`; DROP TABLE t; --"]}),
    "kinds": lambda it, _: json.dumps({key: [it[key]] for key in it}),
    "numbers": lambda it, _: json.dumps(it | {"format": 1e308, "column": [2**64]}),
    "ten megabytes": lambda it, _: json.dumps(it | {"more": "x" * 10_000_000}),
    "depth": lambda it, _: json.dumps(it)[:-1] + ',"more":' + deep(10_000) + "}",
    "no JSON": lambda _, __: "\x80\x04cos\nsystem\n",
    "pickle": lambda it, _: pickle.dumps(it, 0).decode("latin-1"),
}


@pytest.mark.parametrize("name", REGISTRATIONS)
def test_a_hostile_property(name: str, tmp_path: Path) -> None:
    """If a registration is hostile, scans read all files, or use its index without harm.

    Each statement succeeds or raises SieveError, and Sieve opens no file outside the warehouse.
    """
    warehouse, _ = prepared(tmp_path / "here", "disable")
    outside = tmp_path / "outside"
    outside.mkdir()
    value = REGISTRATIONS[name](registration(warehouse), outside)
    warehouse.alter("t", lambda before: before | {"sieve.index.id_sieve": value})
    with confined(warehouse.folder):
        told = scan(warehouse, "t", 13)
        for statement in (
            "SHOW SIEVE INDEXES ON t", "DESCRIBE SIEVE INDEX EXTENDED id_sieve ON t",
            "REFRESH SIEVE INDEX id_sieve ON t", "VACUUM SIEVE INDEX id_sieve ON t",
            "DROP SIEVE INDEX id_sieve ON t",
        ):  # fmt: skip
            with suppress(SieveError):
                Session(warehouse).sql(statement)
    assert told.files == told.total or name == "names"
    assert list(outside.iterdir()) == []


def test_a_property_of_a_hundred_megabytes() -> None:
    """Sieve neither accepts nor parses a registration of a hundred megabytes."""
    assert parse_registration('{"format":1,"more":"' + "x" * 100_000_000 + '"}') is None


def sealed(body: dict[str, Any]) -> bytes:
    """The bytes of a manifest with a correct checksum."""
    text = json.dumps(body, separators=(",", ":"))
    seal = hashlib.sha256(text.encode()).hexdigest()
    return f'{text[:-1]},"checksum":"{seal}"}}'.encode()


def deeper(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    """Returns a function that changes one member of a manifest.

    The member's path consists of names and list positions, separated by dots.
    """

    def change(body: dict[str, Any]) -> None:
        *places, last = path.split(".")
        at: Any = body
        for place in places:
            at = at[int(place)] if place.isdecimal() else at[place]
        at[last] = value

    return change


MANIFESTS = {
    "run that leads out": deeper("runs.0.id", "../../../x"),
    "file that leads out": deeper("runs.0.files.0.name", "../../../../etc/passwd"),
    "absolute file": deeper("runs.0.files.0.name", "/etc/passwd"),
    "list that leads out": deeper("locations.parts.0.name", "../versions/1.json"),
    "monstrous length": deeper("runs.0.files.0.length", 2**63 - 1),
    "monstrous count": deeper("locations.count", 2**62),
    "monstrous rows": deeper("locations.parts.0.rows", 2**31 - 1),
    "monstrously many parts": deeper("locations.parts", [{}] * 1_000_000),
    "no parts": deeper("locations.parts", []),
    "negative places": deeper("runs.0.locations", -1),
    "class": deeper("runs.0.encoder", {"type": "__import__('os')"}),
    "root of another scheme": deeper("roots", ["http://127.0.0.1:1/"]),
    "state": deeper("state", "READY"),
    "another table": deeper("table.table", "u"),
    "another index": deeper("index", "0" * 8 + "-0000" * 3 + "-" + "0" * 12),
    "more members": deeper("more", 1),
    "depth": deeper("comment", None),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_hostile_manifest(name: str, tmp_path: Path) -> None:
    """Scans read all files if a manifest is hostile, even if its checksum is correct.

    An attacker who may write below the root folder could write a hostile manifest.
    """
    warehouse, _ = prepared(tmp_path / "here", "disable")
    (path,) = warehouse.root.glob("*/versions/1.json")
    body = json.loads(path.read_bytes())
    del body["checksum"]
    MANIFESTS[name](body)
    data = sealed(body)
    if name == "depth":
        data = data.replace(b'"comment":null', b'"comment":' + deep(10_000).encode())
    path.write_bytes(data)
    with confined(warehouse.folder):
        told = scan(warehouse, "t", 13)
        for statement in ("REFRESH SIEVE INDEX id_sieve ON t", "DROP SIEVE INDEX id_sieve ON t"):
            with suppress(SieveError):
                Session(warehouse).sql(statement)
    assert told.files == told.total


def fuzzed(inputs: int) -> float:
    """Passes changed texts to parsers, each of which must return a result or raise SieveError.

    Returns:
        The longest CPU time that a parser needed for one input, in seconds.
    """
    seed = os.environ.get("SIEVE_SEED", str(random.SystemRandom().getrandbits(32)))
    chance = random.Random(seed)
    noise = Path(__file__).read_bytes()
    texts = [
        "CREATE SIEVE INDEX IF NOT EXISTS a ON t (b, c.d) OPTIONS (shape = 'map') COMMENT 'x'",
        "ESTIMATE SIEVE INDEX ON t (a) WHERE a > 5",
        "VACUUM SIEVE INDEX a ON `t`.`u` RETAIN 1 HOURS",
        '{"format":1,"uuid":"0b9f3c1e-5a55-4b1c-9d0e-0123456789ab","column":["a"],"root":"file:/x"}',
    ]  # fmt: skip
    readers: list[Callable[[bytes], object]] = [
        lambda data: parse_statement(data.decode("latin-1")),
        lambda data: parse_registration(data.decode("latin-1")),
        parse_manifest,
        lambda data: parse_locations(data, ["file:/x"], 1),
    ]
    worst = 0.0
    for number in range(inputs):
        data = bytearray(chance.choice(texts).encode())
        for _ in range(chance.randrange(6)):
            begin, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
            start = chance.randrange(len(noise))
            data[begin:end] = noise[start : start + chance.randrange(40)] * chance.choice(
                (1, 1, 50)
            )
        begun = time.thread_time()
        with suppress(SieveError):
            readers[number % len(readers)](bytes(data))
        worst = max(worst, time.thread_time() - begun)
    sys.stdout.write(f"SIEVE_SEED={seed}: {inputs} inputs, the slowest took {worst:.3f} s\n")
    return worst


@pytest.mark.parametrize("inputs", [SHORT, pytest.param(MORE, marks=pytest.mark.long)])
def test_readers_return_a_result_or_an_error_of_sieve(inputs: int) -> None:
    """For random inputs, each parser returns a result or raises SieveError."""
    fuzzed(inputs)


@pytest.mark.soak
def test_readers_refuse_a_million_inputs_in_time() -> None:
    """For a million random inputs, each parser returns a result or raises SieveError.

    Each input takes less than a second of CPU time.
    """
    assert fuzzed(LONG) < 1
