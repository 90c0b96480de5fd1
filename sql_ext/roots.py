"""Which folders may hold indexes: a table property alone must not lead anywhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from sieve.errors import UnsupportedError
from sieve.store import split
from sql_ext.settings import Settings

FOLDER = ".sieve"
REMEMBERED_S = 60.0


class Roots:
    """Knows each database's own root, which the metastore tells."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._lock = threading.Lock()
        self._databases: dict[str, tuple[str, float]] = {}

    def check(
        self, root: str, database: str, settings: Settings, session: Callable[[], Any]
    ) -> None:
        """Raise UnsupportedError unless indexes of this database may lie in ``root``."""
        given = root.rstrip("/")
        if given in {allowed.rstrip("/") for allowed in (settings.path or "", *settings.roots)}:
            return
        if given != self.of_database(database, session):
            raise UnsupportedError(
                "SIEVE_ROOT_REFUSED",
                f"the index lies in {root}, which is neither its database's {FOLDER} folder, "
                "nor spark.sieve.path, nor in spark.sieve.roots; an administrator may list it",
            )

    def for_new(self, database_location: str, settings: Settings) -> str:
        """Where a new index of a database goes, an absolute URI."""
        if settings.path is None:
            return f"{database_location.rstrip('/')}/{FOLDER}"
        split(settings.path)
        return settings.path.rstrip("/")

    def of_database(self, database: str, session: Callable[[], Any]) -> str:
        """The default root of a database."""
        with self._lock:
            known = self._databases.get(database)
            old = known is not None and time.monotonic() - known[1] > REMEMBERED_S
            if known is not None and old:
                # Scans go on with what is known; one of them has it read again.
                self._databases[database] = (known[0], time.monotonic())
        if known is None:
            return self._read(database, session())
        if old:
            arguments = (database, session())
            threading.Thread(target=self._read, args=arguments, daemon=True).start()
        return known[0]

    def _read(self, database: str, session: Any) -> str:
        location = str(self._driver.databaseLocation(session, database))
        root = f"{location.rstrip('/')}/{FOLDER}"
        with self._lock:
            self._databases[database] = (root, time.monotonic())
        return root
