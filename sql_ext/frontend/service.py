"""Statement service: parses SIEVE statements and runs them in the user's session.

The driver sends the text of a statement twice. While Spark parses the statement, the driver
requests `parse`, which returns the result columns or a syntax error. When Spark executes the
statement, the driver requests `run`, which uses the cached result of the parser.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from pyspark import SparkContext

import sieve
from sieve.environment import Environment
from sieve.metadata.records import CreatedBy
from sieve.reader.pruner import Pruner
from sieve.storage.interface import Store
from sieve.workload.suggest import ColumnTest, TableColumn
from sql_ext.driver import attach, executor_setup
from sql_ext.driver.roots import Roots
from sql_ext.driver.settings import Settings, parse_settings, valid_settings
from sql_ext.frontend.handle_event import EventHandler
from sql_ext.frontend.request_queue import Request
from sql_ext.statements.commands import columns_of
from sql_ext.statements.context import StatementContext
from sql_ext.statements.execute import execute
from sql_ext.statements.parser import parse_statement
from sql_ext.statements.table_functions import call

log = logging.getLogger(__name__)

_parsed = lru_cache(64)(parse_statement)
"""Parses a statement to its command record, and caches this record for the later `run`."""


class StatementService:
    """Parses and runs statements.

    The first statement that runs connects the front end to the SparkContext.

    Attributes:
        event_handler: handles the events of tables and refreshes indexes after writes.
        tests: results of ADVISE's tests, by table and column.
    """

    def __init__(
        self,
        gateway: Any,
        roots: Roots,
        open_store: Callable[[str], Store],
        pruner: Pruner,
    ) -> None:
        self._gateway = gateway
        self._roots = roots
        self._open_store = open_store
        self._pruner = pruner
        self._lock = threading.Lock()
        self._context: SparkContext | None = None
        self._sent = False
        self.event_handler = EventHandler()
        self.tests: dict[TableColumn, ColumnTest] = {}

    def parse(self, request: Request) -> Mapping[str, Any]:
        """The result columns of a statement. Raises an error if the statement's syntax is wrong."""
        return {"columns": columns_of(_parsed(request.body["text"]))}

    def run(self, request: Request) -> Mapping[str, Any]:
        """Runs a statement, and returns its rows. The values of each row are in column order."""
        text = request.body["text"]
        command = _parsed(text)
        settings = parse_settings(request.body["settings"])
        label = " ".join(text.split())[:200]
        return {"rows": execute(command, self._begun(request, label, settings))}

    def function(self, request: Request) -> Mapping[str, Any]:
        """Runs a table function of a FROM clause, and returns its columns and rows."""
        settings = parse_settings(request.body["settings"])
        return call(request.body, self._begun(request, request.body["name"], settings))

    def event(self, request: Request) -> Mapping[str, Any]:
        """Handles an event of a table, such as a write or a drop."""
        body = request.body
        table = body["table"]
        label = f"spark.sieve.refresh.auto: {table['database']}.{table['table']}"
        # No user can correct an invalid setting during an event, so Sieve ignores the invalid value
        # and updates the index.
        context = self._begun(request, label, valid_settings(body["settings"]))
        try:
            return self.event_handler.act(body, context)
        finally:
            for index, sentence in context.environment.advice:
                # No user reads the result of an event, so the log receives the advice.
                log.warning("%s: %s%s", label, f"index {index}: " if index else "", sentence)

    def _begun(self, request: Request, label: str, settings: Settings) -> StatementContext:
        """The context of a request. The descriptions of its Spark jobs begin with `label`."""
        session = request.session()
        context = self._attached()
        driver = self._gateway.entry_point

        def describe_job(step: str) -> None:
            request.check_cancelled()
            context.setJobDescription(f"{label} ({step})")

        environment = Environment(
            open_store=self._open_store,
            root_for_new=partial(self._roots.for_new, settings=settings),
            check_root=lambda root, database: self._roots.check(
                root, database, settings, request.session
            ),
            check_shared=lambda root, database: self._roots.check_shared(
                root, database, settings, request.session
            ),
            check_cancelled=request.check_cancelled,
            describe_job=describe_job,
            software=CreatedBy(sieve.__version__, str(context.version)),
            range_bytes=settings.range_bytes,
            changing=lambda: request.gateway.changing(request.id),
        )
        return StatementContext(
            driver,
            context,
            session,
            environment,
            settings,
            self._send_code,
            self._pruner.invalidate,
            self.event_handler,
            self._pruner.cache,
            self.tests,
        )

    def _attached(self) -> SparkContext:
        with self._lock:
            if self._context is None:
                self._context = attach.attach_context(self._gateway)
            return self._context

    def _send_code(self) -> None:
        context = self._attached()
        with self._lock:
            if not self._sent:
                executor_setup.send_code(context)
                self._sent = True
