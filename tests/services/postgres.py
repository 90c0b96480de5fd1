"""Runs a separate PostgreSQL server for tests in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_ports

USER = "hive"
PASSWORD = "not 'one' to & guess"
DATABASE = "metastore"
PROGRAMS = ("initdb", "pg_ctl", "createdb", "psql")


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running PostgreSQL server with an empty database.

    Attributes:
        programs: the folder of PostgreSQL's programs.
        port: the TCP port on the loopback address.
    """

    programs: Path
    port: int

    @property
    def jdbc(self) -> str:
        """The JDBC URL of the database."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{DATABASE}"

    def query(self, text: str) -> list[str]:
        """Runs a query; returns each row as one line of text."""
        return self.run("psql", "--no-psqlrc", "-At", "-d", DATABASE, "-c", text).splitlines()

    def run(self, program: str, *args: str) -> str:
        """Runs one of PostgreSQL's clients as the metastore's user."""
        at = ("-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-w")
        return _run(self.programs / program, *at, *args, env=os.environ | {"PGPASSWORD": PASSWORD})


@contextmanager
def started() -> Iterator[Postgres]:
    """Starts a server that requires a password.

    At the end, stops the server and deletes its data.
    """
    programs = _programs()
    # The server may have to run as another user. A different user cannot access pytest's folder.
    with tempfile.TemporaryDirectory(prefix="sieve-pg-") as name:
        folder = Path(name)
        account = _account()
        data, secret = folder / "data", folder / "password"
        secret.write_text(PASSWORD)
        for path in (folder, secret):
            os.chown(path, account.pw_uid, account.pw_gid)
        # PostgreSQL refuses to run as root, so root must start it as another user.
        own: dict[str, Any] = {"cwd": folder}
        if os.geteuid() == 0:
            own |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        _run(
            programs / "initdb",
            *("-D", str(data), "-U", USER, "--pwfile", str(secret), "-A", "scram-sha-256"),
            *("-E", "UTF8", "--locale", "C", "--no-sync"),
            **own,
        )
        (port,) = free_ports(1)
        # Nobody reads the data after the test, so the server does not sync its data.
        options = f"-h 127.0.0.1 -p {port} -k '{folder}' -c fsync=off"
        control = (programs / "pg_ctl", "-D", str(data), "-w")
        log = folder / "log"
        try:
            _run(*control, "-l", str(log), "-o", options, "start", **own)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{log.read_text() if log.exists() else ''}") from error
        try:
            server = Postgres(programs, port)
            server.run("createdb", DATABASE)
            yield server
        finally:
            _run(*control, "-m", "immediate", "stop", **own)


def _programs() -> Path:
    """The folder with PostgreSQL's programs: on the PATH, or the newest of Debian's folders."""
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    newest = sorted(debian, key=lambda path: float(path.parent.name), reverse=True)
    on_path = [Path(found).parent for found in [shutil.which("initdb")] if found]
    for folder in (*on_path, *newest):
        if all((folder / program).exists() for program in PROGRAMS):
            return folder
    pytest.fail("PostgreSQL is not installed: run `apt-get install postgresql`.", pytrace=False)


def _account() -> pwd.struct_passwd:
    """The user who runs the server: the current user or, for root, the user of Debian's package."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    accounts = {account.pw_name: account for account in pwd.getpwall()}
    return accounts.get("postgres") or accounts["nobody"]


def _run(program: Path, *args: str, **how: Any) -> str:
    # The server would keep a pipe of pg_ctl open, so the output goes to a file.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            [str(program), *args],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
            **how,
        )
        output.seek(0)
        text = output.read()
    assert done.returncode == 0, f"{program.name}: {text}"
    return text
