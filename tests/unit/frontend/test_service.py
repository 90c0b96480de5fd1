"""The statement service: when it sends the front end's code to the executors."""

from __future__ import annotations

from typing import Any

import pytest

from sql_ext.frontend import service as module
from sql_ext.frontend.service import StatementService


def test_code_is_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first statement that needs the front end's code on executors sends the code there.

    If sending the code fails, the next statement sends it again.
    """
    attached: list[Any] = []
    sent: list[Any] = []

    def attach(gateway: Any) -> str:
        attached.append(gateway)
        return "context"

    def send(context: Any) -> None:
        sent.append(context)
        if len(sent) == 1:
            raise OSError("no space left")

    monkeypatch.setattr(module.attach, "attach_context", attach)
    monkeypatch.setattr(module.executor_setup, "send_code", send)
    anything: Any = None
    service = StatementService("gateway", anything, anything, anything)
    assert service._attached() == "context"
    assert sent == []
    with pytest.raises(OSError, match="no space"):
        service._send_code()
    service._send_code()
    service._send_code()
    assert sent == ["context", "context"]
    assert attached == ["gateway"]
