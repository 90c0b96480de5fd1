"""The queue of requests to the front end: how requests are read and answers are sent."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable

import pytest
from py4j.protocol import Py4JNetworkError

from sql_ext.frontend import request_queue
from sql_ext.frontend.request_queue import Request, RequestQueue, _answer


def test_unreadable_request_gets_an_error() -> None:
    """If a request's JSON is nested too deeply, the answer is an error, and the thread survives."""
    deep = "[" * 100_000 + "]" * 100_000
    answer = json.loads(_answer(None, 7, 1, f'7 1\n{{"kind": "prune", "predicate": {deep}}}', {}))
    assert answer["error"]["condition"] == "SIEVE_INTERNAL_ERROR"


def test_unwritable_answer_becomes_an_error() -> None:
    """If JSON cannot represent an answer, the thread sends an error instead, and survives."""
    answer = json.loads(
        _answer(None, 7, 1, '7 1\n{"kind": "prune"}', {"prune": lambda _: {"x": {1}}})
    )
    assert answer["error"]["condition"] == "SIEVE_INTERNAL_ERROR"


def test_a_request_in_pieces_is_put_together() -> None:
    """If the driver sends a request in pieces, the handler gets the complete request."""

    class Pieces:
        def piece(self, number: int, k: int) -> str:
            return {(3, 1): '"x": [1, ', (3, 2): "2]}"}[number, k]

    seen: list[Request] = []

    def handle(request: Request) -> dict[str, object]:
        seen.append(request)
        return {}

    assert _answer(Pieces(), 3, 3, '3 3\n{"kind": "prune", ', {"prune": handle}) == "{}"
    assert (seen[0].id, seen[0].kind, seen[0].body) == (3, "prune", {"x": [1, 2]})


class Driver:
    """A fake driver that supplies requests and receives answers."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[str] = queue.Queue()
        self.answers: queue.Queue[int] = queue.Queue()
        self.gone = False

    def add_request(self, number: int, kind: str) -> None:
        """Adds a request to the queue."""
        self.waiting.put(f"{number} 1\n{json.dumps({'kind': kind})}")

    def take(self, _lane: str, _millis: int) -> str:
        """Returns the next request of a queue, or an empty string if there is none."""
        if self.gone:
            raise Py4JNetworkError("the driver is gone")
        try:
            return self.waiting.get(timeout=0.05)
        except queue.Empty:
            return ""

    def answer(self, number: int, _text: str) -> None:
        """Receives the answer to a request."""
        self.answers.put(number)


def lane_threads() -> int:
    """Returns the number of running threads of a queue."""
    names = [thread.name for thread in threading.enumerate()]
    return sum(name.startswith("sieve-held-") for name in names)


def test_one_thread_is_always_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the limit of threads is reached, each queue keeps one idle thread.

    Because one thread is idle, no request waits for the start of a thread.
    """
    go_on = threading.Event()
    driver = Driver()
    monkeypatch.setattr(request_queue, "THREADS", {"held": 3})
    RequestQueue(driver, "held", {"hang": lambda _: go_on.wait(60) and {}})
    for number, threads in enumerate((2, 3, 3)):
        assert lane_threads() == min(3, number + 1)
        driver.add_request(number, "hang")
        wait_until(driver.waiting.empty)
        wait_until(lambda threads=threads: lane_threads() == threads)
    driver.add_request(9, "hang")
    time.sleep(0.3)
    assert (lane_threads(), driver.waiting.qsize()) == (3, 1)
    go_on.set()
    assert {driver.answers.get(timeout=30) for _ in range(4)} == {0, 1, 2, 9}
    driver.gone = True
    wait_until(lambda: lane_threads() == 0)


def test_later_work_does_not_delay_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The front end answers a request before it begins the request's follow-up work."""
    driver = Driver()
    order: queue.Queue[int] = queue.Queue()

    def note() -> None:
        order.put(driver.answers.get(timeout=30))

    monkeypatch.setattr(request_queue, "THREADS", {"held": 1})
    RequestQueue(driver, "held", {"prune": lambda _: {}}, afterwards=note)
    for number in (3, 4):
        driver.add_request(number, "prune")
        assert order.get(timeout=30) == number
    driver.gone = True
    wait_until(lambda: lane_threads() == 0)


def wait_until(true: Callable[[], bool]) -> None:
    """Waits until a condition is true, for at most half a minute."""
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)
