"""Runs the example project `examples/dbt` with the package `integrations/dbt`, as users do."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from thrift_session import thrift_session

HOME = Path(__file__).resolve().parents[1]
DBT = HOME / "build" / "dbt" / "bin" / "dbt"


class Project:
    """Copies of the dbt example and of the package. The copies run on a Spark server.

    Args:
        folder: the folder that contains both copies.
        port: the port of the Spark server.
        target: the name of the target in the dbt profile.
    """

    def __init__(self, folder: Path, port: int, target: str = "dev") -> None:
        if not DBT.exists():
            pytest.fail("run `make test-clients`, which installs dbt")
        self._port, self._target = port, target
        self.folder = folder / "examples" / "dbt"
        for name in ("examples/dbt", "integrations/dbt"):
            shutil.copytree(HOME / name, folder / name)
        self.dbt("deps")

    def dbt(self, *args: str, fails: bool = False) -> str:
        """Runs a dbt command, and returns the command's output."""
        done = subprocess.run(
            [DBT, "--no-send-anonymous-usage-stats", *args, *self._options(args)],
            cwd=self.folder,
            env=os.environ | {"SIEVE_THRIFT_PORT": str(self._port)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert bool(done.returncode) == fails, done.stdout[-6000:] + done.stderr[-2000:]
        return done.stdout

    def _options(self, args: Sequence[str]) -> list[str]:
        target = [] if args[0] == "deps" else ["--target", self._target]
        return ["--profiles-dir", ".", *target]

    def change(self, model: str, old: str, new: str) -> None:
        """Replaces a text in a model's file."""
        file = self.folder / "models" / f"{model}.sql"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """Runs a statement in a new session, and returns its rows."""
        with thrift_session(self._port) as connection:
            cursor = connection.cursor()
            cursor.execute(text)
            return cursor.fetchall()

    def indexes(self) -> dict[tuple[str, str], tuple[str, int]]:
        """The state and version of each index, by the names of table and index."""
        rows = self.sql("SELECT table, index, state, version FROM sieve_indexes('shop')")
        return {(table, index): (state, version) for table, index, state, version in rows}

    def changes(self, table: str, index: str) -> list[str]:
        """For each version of an index, the change that made the version, newest first."""
        rows = self.sql(f"SELECT index, change FROM sieve_versions('shop.{table}')")
        return [change for name, change in rows if name == index]

    def check(self, query: str, at_most: int) -> None:
        """Checks that the index changes no rows of a query, and that the query reads few files."""
        with thrift_session(self._port) as connection:
            cursor = connection.cursor()
            answers = []
            for enabled in ("false", "true"):
                cursor.execute(f"SET spark.sieve.enabled = {enabled}")
                cursor.fetchall()
                cursor.execute(query)
                answers.append(sorted(cursor.fetchall()))
            cursor.execute(f"EXPLAIN SIEVE {query}")
            (scan,) = cursor.fetchall()
        assert answers[0] == answers[1] != []
        assert scan[5] <= at_most < scan[4], scan
