"""In each mode, corpus statements return the expected rows, and read no more files than allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from corpus import EVERY_MODE, MODES, OVER_THRIFT, Script, is_long, read_script, render, step
from engines import Engine, Result, SparkEngine, ThriftEngine
from foretold import differences as unforetold
from proven import is_proven, record
from running import answers, differences, prepare
from spark_session import INTERPRETED, RANGES, Lab
from thrift_session import thrift_session

OFTEN = {"dynamic", "joinkinds", "joins", "subqueries"}
"""The corpus files about run-time pruning.

For these files, a test compares EXPLAIN SIEVE with the run for every eighth query. For all other
files, the test compares every 48th query.
"""

FORETOLD = {"joinkinds", "subqueries"}
"""The files for which `make test` compares EXPLAIN SIEVE with the actual run."""

Connect = Callable[[], Engine]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs each corpus file in the modes that apply to this file.

    The mode ``off`` omits files with a stored proof.
    """
    if "mode" in metafunc.fixturenames:
        anew = metafunc.config.getoption("regenerate")
        every = metafunc.config.getoption("every")
        runs = [
            pytest.param(
                path,
                mode,
                each,
                id=f"{path.stem}-{mode}" + ("" if each == step(path.stem, mode) else "-all"),
                marks=()
                if each == step(path.stem, mode)
                and (not is_long(path.stem, mode) or (every and mode == "strict"))
                else pytest.mark.long,
            )
            for path in sorted(Path(__file__).parent.glob("*.sql"))
            for mode in MODES
            if mode in {"off", "strict", "audited"}
            or path.stem in EVERY_MODE
            or (mode == "thrift" and path.stem in OVER_THRIFT)
            if anew or mode != "off" or not is_proven(read_script(path))
            for each in sorted({step(path.stem, mode), 1}, reverse=True)
        ]
        metafunc.parametrize(("script", "mode", "each"), runs, indirect=["script"])
    elif "script" in metafunc.fixturenames:
        # The list omits files in `EVERY_MODE`, because they contain statements about all scans of a
        # session.
        paths = sorted(Path(__file__).parent.glob("*.sql"))
        undisturbed = [
            pytest.param(
                path, id=path.stem, marks=() if path.stem in FORETOLD else pytest.mark.long
            )
            for path in paths
            if path.stem not in EVERY_MODE
        ]
        metafunc.parametrize("script", undisturbed, indirect=True)


@pytest.fixture(scope="module")
def script(request: pytest.FixtureRequest) -> Script:
    """One parsed file of the corpus."""
    return read_script(request.param)


@pytest.fixture(scope="module")
def spark(script: Script, lab: Lab) -> Iterator[Connect]:
    """Creates the file's tables once; then opens a new session in the driver for each mode."""
    with lab.database(f"golden_{script.name}") as database:

        def connect() -> Engine:
            session = lab.spark.newSession()
            session.sql(f"USE {database}")
            return in_ranges(SparkEngine(session), script)

        prepare(connect(), script)
        yield connect


@pytest.fixture(scope="module")
def thrift(script: Script, lab: Lab, spark: Connect, thrift_port: int) -> Iterator[Connect]:
    """Opens connections to the run's Thrift server.

    The server's driver has the corpus file's tables.
    """
    assert spark
    with thrift_session(thrift_port, username="golden") as client:

        def connect() -> Engine:
            engine = ThriftEngine(client.cursor(), lab.spark)
            engine.run(f"USE golden_{script.name}")
            return in_ranges(engine, script)

        yield connect


def in_ranges(engine: Engine, script: Script) -> Engine:
    """The engine, with settings that divide each file of a table into several ranges.

    The file ``statements`` expects results for whole files, so it runs without these settings.
    """
    if script.name != "statements":
        for key, value in RANGES.items():
            engine.run(f"SET {key}={value}")
    return engine


@pytest.fixture
def every(request: pytest.FixtureRequest) -> int | None:
    """The number n of the option `--every`: only one query in n runs."""
    found: int | None = request.config.getoption("every")
    return found


def test_same_rows_in_every_mode(
    script: Script, mode: str, each: int, every: int | None, request: pytest.FixtureRequest
) -> None:
    """In each mode, a statement returns the expected rows and reads the annotated files."""
    regenerate = mode == "off" and request.config.getoption("regenerate")
    connect: Connect = request.getfixturevalue("thrift" if mode == "thrift" else "spark")
    # Files of `EVERY_MODE` contain statements about all earlier scans, so a run must not omit a
    # statement.
    results = answers(connect(), mode, script, 1 if script.name in EVERY_MODE else every or each)
    if regenerate:
        script.expected.write_text(regenerated(results, script, connect), encoding="utf-8")
    assert not (wrong := differences(script, mode, results)), "\n".join(wrong)
    if regenerate:
        record(script)


def test_explain_predicts_the_run(
    script: Script, lab: Lab, spark: Connect, every: int | None
) -> None:
    """EXPLAIN SIEVE predicts a run: files listed, files skipped, run-time values and reasons."""
    assert spark
    session = Lab(lab.spark.newSession())
    session.sql(f"USE golden_{script.name}")
    for key, value in (RANGES | INTERPRETED).items():
        session.spark.conf.set(key, value)
    often = 8 if script.name in OFTEN else 48
    wrong = unforetold(session, script, max(often, every or 1))
    assert not wrong, "\n".join(wrong)


def regenerated(off: list[Result | None], script: Script, connect: Connect) -> str:
    """The text of an ``.out`` file.

    The rows of a statement come from the mode ``off``. A statement that does not run in this mode
    has the rows of another mode.
    """
    strict = answers(connect(), "strict", script) if None in off else off
    chosen = [one or other or Result(()) for one, other in zip(off, strict, strict=True)]
    return "".join(render(s, r.rows) for s, r in zip(script.queries, chosen, strict=True))
