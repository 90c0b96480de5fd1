"""Roots: checks whether a folder is an allowed root, that is, a folder for indexes.

A table property names the root of an index. Any user who may alter the table can change this
property. So Sieve accepts only three kinds of roots: the database's own folder ``.sieve``, the
value of ``spark.sieve.path``, and the folders in ``spark.sieve.roots``.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from sieve.errors import RootRefusedError
from sieve.storage.interface import split
from sql_ext.driver.settings import Settings

FOLDER = ".sieve"
REMEMBERED_S = 60.0


class Roots:
    """Checks whether a folder may contain indexes, and caches each database's default root.

    Args:
        driver: py4j entry point of the driver's gateway.
        path: ``spark.sieve.path`` at the driver's start, or None if unset.
        file_system: URI of the default file system, for folders without a scheme.
    """

    def __init__(self, driver: Any, path: str | None = None, file_system: str = "file:///") -> None:
        self._driver = driver
        self._path = path
        self._file_system = file_system
        self._lock = threading.Lock()
        self._databases: dict[str, tuple[str, float]] = {}

    def check(
        self, root: str, database: str, settings: Settings, session: Callable[[], Any]
    ) -> None:
        """Raises RootRefusedError if ``root`` may not contain indexes of this database."""
        named = (settings.path, self._path, *settings.roots)
        if not self._holds(root, database, named, session):
            raise RootRefusedError(
                "SIEVE_ROOT_REFUSED",
                f"the index is in {root}, which is neither its database's {FOLDER} folder, "
                "nor spark.sieve.path, nor in spark.sieve.roots; an administrator may list it",
            )

    def check_shared(
        self, root: str, database: str, settings: Settings, session: Callable[[], Any]
    ) -> None:
        """Raises RootRefusedError if only this session's ``spark.sieve.path`` permits ``root``."""
        if not self._holds(root, database, (self._path, *settings.roots), session):
            raise RootRefusedError(
                "SIEVE_ROOT_REFUSED",
                f"only this session would use an index in {root}, because spark.sieve.path names "
                "the folder only here; list the folder in spark.sieve.roots, for all sessions in "
                "spark-defaults.conf, or here and in each session that shall use the index",
            )

    def _holds(
        self,
        root: str,
        database: str,
        named: Sequence[str | None],
        session: Callable[[], Any],
    ) -> bool:
        given = _plain(root)
        if any(folder is not None and _plain(self._qualified(folder)) == given for folder in named):
            return True
        if given == _plain(self.of_database(database, session)):
            return True
        # Sessions can define different catalogs of the same name, and the cached root can come from
        # another session. The session catalog's databases are the same in all sessions.
        return "." in database and given == _plain(self._read(database, session()))

    def _qualified(self, folder: str) -> str:
        """The absolute URI of a folder. A path without a scheme is in the default file system."""
        return self._file_system.rstrip("/") + folder if folder.startswith("/") else folder

    def for_new(self, database_location: str, settings: Settings) -> str:
        """The absolute URI of the root in which a new index of this database is created."""
        if settings.path is None:
            return f"{database_location.rstrip('/')}/{FOLDER}"
        root = self._qualified(settings.path)
        split(root)
        return _plain(root)

    def of_driver(self, database: str, session: Callable[[], Any]) -> str:
        """The root of a database's indexes, for sessions that do not set ``spark.sieve.path``."""
        if self._path is None:
            return self.of_database(database, session)
        return _plain(self._qualified(self._path))

    def of_database(self, database: str, session: Callable[[], Any]) -> str:
        """The default root of a database, in the database's own folder."""
        with self._lock:
            known = self._databases.get(database)
            old = known is not None and time.monotonic() - known[1] > REMEMBERED_S
            if known is not None and old:
                # The cached root is too old, but this call still returns it. A background thread
                # looks up the current root (stale-while-revalidate).
                self._databases[database] = (known[0], time.monotonic())
        if known is None:
            return self._read(database, session())
        if old:
            arguments = (database, session())
            threading.Thread(target=self._read, args=arguments, daemon=True).start()
        return known[0]

    def _read(self, database: str, session: Any) -> str:
        location = str(self._driver.tables().databaseLocation(session, database))
        root = f"{location.rstrip('/')}/{FOLDER}"
        with self._lock:
            self._databases[database] = (root, time.monotonic())
        return root


def _plain(uri: str) -> str:
    """The canonical form of a folder's URI, without extra slashes, as in Hadoop's ``Path``."""
    uri = re.sub(r"^([a-z][a-z0-9+.-]*):///+", r"\1:/", uri)
    return re.sub(r"(?<![:/])/{2,}", "/", uri).rstrip("/")
