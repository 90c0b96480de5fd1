"""Adds compiled jars to a wheel, for the Spark lines in the argument of ``make wheel``.

A Spark line is a release line of Spark, such as 4.1. Earlier tests may have left old jars for other
Spark lines in the folder of the jars.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelJars(BuildHookInterface):
    """Adds the jars for the Spark lines in the variable ``SIEVE_LINES``; all jars if unset."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Adds the jars explicitly, because hatchling omits files that git ignores."""
        lines = os.environ.get("SIEVE_LINES", "").split()
        jars = (Path(self.root) / "sql_ext" / "jars").glob("sieve-spark-*.jar")
        build_data["artifacts"] += [
            f"/sql_ext/jars/{jar.name}"
            for jar in jars
            if not lines or any(f"-{line}_" in jar.name for line in lines)
        ]
