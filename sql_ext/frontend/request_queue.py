"""Request queues: the front end's threads receive the driver's requests and send the answers.

The front end opens no port. Each thread waits for a request inside a py4j call to the JVM (long
polling). py4j connects each Python thread to its own JVM thread. During a request, the JVM thread
uses the session, job group and tags of the Spark thread that sent the request.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JNetworkError

from sieve.errors import UnavailableError
from sql_ext.frontend.translate_error import INTERNAL, translate_error

log = logging.getLogger(__name__)

Handler = Callable[["Request"], Mapping[str, Any]]
POLL_MS = 1000

THREADS: Final[Mapping[str, int]] = {
    # `Bulkhead` limits the number of threads that wait for one store. So some threads stay free for
    # scans even if three stores hang.
    "scan": 32,
    "statement": 16,
    # Answers function calls inside queries that a statement or another function plans.
    "nested": 4,
    "background": 2,
    "page": 1,
}
"""Maps each queue's name to the maximum number of its threads."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the driver.

    Attributes:
        id: the request's number, which is unique in the driver.
        kind: one of parse, statement, function, prune, dictionary, event, page and history.
        body: the other members of the request's JSON.
        gateway: a py4j object, the driver's side of the request queue. Its methods take the
            request's ``id``.
    """

    id: int
    kind: str
    body: Mapping[str, Any]
    gateway: Any

    def session(self) -> Any:
        """The session that sent this request, as a py4j object."""
        return self.gateway.session(self.id)

    def check_cancelled(self) -> None:
        """Raises UnavailableError if the user has cancelled this request."""
        if self.gateway.cancelled(self.id):
            raise UnavailableError(
                "SIEVE_CANCELLED",
                "the statement was cancelled; each index is as before it or as after it",
            )


class RequestQueue:
    """A pool of threads that serve one request queue until the driver ends.

    The start of a thread takes time in the driver and in the front end, so the pool begins with one
    thread. When the last idle thread takes a request, the pool starts another thread.

    Args:
        gateway: the driver's side of the queue, a py4j object.
        name: name of the queue, one of `THREADS`.
        handlers: handler of each kind of request.
        afterwards: a function that the thread calls after it has sent an answer.
    """

    def __init__(
        self,
        gateway: Any,
        name: str,
        handlers: Mapping[str, Handler],
        afterwards: Callable[[], object] = lambda: None,
    ) -> None:
        self._gateway = gateway
        self._name = name
        self._handlers = handlers
        self._afterwards = afterwards
        self._lock = threading.Lock()
        self._idle = 0
        self._started = 0
        self._start()

    def _start(self) -> None:
        """Starts a thread if no thread is idle and the pool is below its maximum."""
        with self._lock:
            if self._idle > 0 or self._started == THREADS[self._name]:
                return
            self._idle += 1
            self._started += 1
            name = f"sieve-{self._name}-{self._started}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                text = self._gateway.take(self._name, POLL_MS)
                if text:
                    self._count_idle(-1)
                    try:
                        self._start()
                        _serve(self._gateway, text, self._handlers)
                        self._afterwards()
                    finally:
                        self._count_idle(1)
            except Py4JNetworkError:
                return
            except Exception:
                log.exception("a request of the driver could not be read")

    def _count_idle(self, change: int) -> None:
        with self._lock:
            self._idle += change


def _serve(gateway: Any, text: str, handlers: Mapping[str, Handler]) -> None:
    number, pieces = (int(word) for word in text.partition("\n")[0].split())
    gateway.answer(number, _answer(gateway, number, pieces, text, handlers))


def _answer(
    gateway: Any, number: int, pieces: int, text: str, handlers: Mapping[str, Handler]
) -> str:
    """The handler's answer as JSON, or the handler's error as JSON that the driver can raise.

    Every request gets an answer, even after an exception. Later requests need the thread, so only a
    lost connection ends the thread.
    """
    try:
        rest = (gateway.piece(number, k) for k in range(1, pieces))
        body = json.loads("".join((text.partition("\n")[2], *rest)))
        request = Request(number, body.pop("kind"), body, gateway)
        return json.dumps(handlers[request.kind](request))
    except Py4JNetworkError:
        raise
    except Exception as error:
        # The driver reports every exception to the user, and this thread continues.
        of = translate_error(error)
        if of.condition == INTERNAL:
            log.exception("request %d failed", number)
        report = {"condition": of.condition, "message": of.message, "sql_state": of.sql_state}
        return json.dumps({"error": report})
