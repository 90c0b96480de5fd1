"""Requests of the driver, as the child reads and answers them."""

from __future__ import annotations

import json

from sql_ext.link import Request, _answer


def test_a_request_that_cannot_be_read_is_answered() -> None:
    """JSON nested beyond what can be parsed comes back as an error, and no thread ends over it."""
    deep = "[" * 100_000 + "]" * 100_000
    answer = json.loads(_answer(None, 7, 1, f'7 1\n{{"kind": "prune", "predicate": {deep}}}', {}))
    assert answer["error"]["condition"] == "SIEVE_INTERNAL_ERROR"


def test_an_answer_that_cannot_be_written_is_an_error() -> None:
    """What no JSON can say is told as a failure, and no thread ends over it."""
    answer = json.loads(
        _answer(None, 7, 1, '7 1\n{"kind": "prune"}', {"prune": lambda _: {"x": {1}}})
    )
    assert answer["error"]["condition"] == "SIEVE_INTERNAL_ERROR"


def test_a_request_in_pieces_is_put_together() -> None:
    """What the driver hands over in pieces reaches the handler whole."""

    class Pieces:
        def piece(self, number: int, k: int) -> str:
            return {(3, 1): '"x": [1, ', (3, 2): "2]}"}[number, k]

    seen: list[Request] = []

    def handle(request: Request) -> dict[str, object]:
        seen.append(request)
        return {}

    assert _answer(Pieces(), 3, 3, '3 3\n{"kind": "prune", ', {"prune": handle}) == "{}"
    assert (seen[0].id, seen[0].kind, seen[0].body) == (3, "prune", {"x": [1, 2]})
