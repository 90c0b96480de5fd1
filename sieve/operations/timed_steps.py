"""Timed steps: shows users each step of a long operation, and measures how long the step takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class TimedSteps:
    """The steps of an operation, in order.

    Attributes:
        describe_job: shows the user a description of the step.
        begun: the name of each step that has begun, and the time at which it began.
    """

    describe_job: Callable[[str], None]
    begun: list[tuple[str, float]] = field(default_factory=lambda: [("", time.monotonic())])

    def __call__(self, step: str) -> None:
        """Begins a step."""
        self.describe_job(step)
        self.begun.append((step, time.monotonic()))

    def seconds(self, step: str) -> tuple[float, float]:
        """The seconds that a step has taken until now, and the seconds of all other steps."""
        ends = [*(at for _, at in self.begun[1:]), time.monotonic()]
        lasted = [(name, end - at) for (name, at), end in zip(self.begun, ends, strict=True)]
        own = sum(time for name, time in lasted if name == step)
        return own, sum(time for _, time in lasted) - own
