"""Writes the parts of docs/sql.md that code defines: columns of answers, reasons, settings.

``python docs/tables.py`` replaces the text between ``<!--name-->`` and ``<!--end-->``. A unit test
compares the page with the output of this module.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sieve.reader.reason import Reason
from sql_ext.statements import commands
from sql_ext.statements.table_functions import FUNCTIONS

HOME: Final = Path(__file__).resolve().parents[1]
PAGE: Final = HOME / "docs" / "sql.md"
_BLOCK: Final = re.compile(r"(<!--([\w: ]+)-->\n).*?(<!--end-->)", re.DOTALL)

_DEFAULTS: Final = {
    "spark.sieve.path": "`<database location>/.sieve`",
    "spark.sieve.roots": "none",
    "spark.sieve.python": "`spark.pyspark.driver.python`, `spark.pyspark.python`, "
    "`PYSPARK_DRIVER_PYTHON`, `PYSPARK_PYTHON`, `python3`",
}
"""The defaults of settings that have no default in ``settings.json``."""

_LINKS: Final = {
    "read again": "#audits",
    "keys of joins": "#joins-and-subqueries",
    "ORDER BY ... LIMIT, MIN and MAX": "#first-rows",
    "declares": "#declared-indexes",
    "counts what other drivers have saved": "#the-history-of-scans",
    "cannot decide": "operations.md#where-indexes-can-be-kept",
}
"""Phrases in the descriptions of settings, and the sections to which the page links them."""


def written(page: str) -> str:
    """The page with newly generated text in each block."""
    return _BLOCK.sub(lambda block: f"{block[1]}{_content(block[2])}\n{block[3]}", page)


def names(page: str) -> list[str]:
    """The names of the page's blocks."""
    return [block[2] for block in _BLOCK.finditer(page)]


def _content(name: str) -> str:
    kind, _, of = name.partition(":")
    if kind == "columns":
        return columns(of)
    return {"reasons": reasons, "settings": settings}[kind]()


def columns(of: str) -> str:
    """The columns of a statement's or function's answer. Types are shown, except STRING.

    `of` is the name of a function, or of a record class that stands for a statement. If the word
    EXTENDED follows the name, the columns are those of the statement with EXTENDED.
    """
    record, _, extended = of.partition(" ")
    which = "extended_columns" if extended else "result_columns"
    pairs = FUNCTIONS[of].columns if of in FUNCTIONS else getattr(getattr(commands, record), which)
    listed = [f"`{name}`" if kind == "STRING" else f"`{name}` {kind}" for name, kind in pairs]
    return f"Columns: {', '.join(listed)}."


def reasons() -> str:
    """The table of reasons, made from the docstrings below the members of `Reason`."""
    texts = _member_texts()
    rows = [f"| `{reason}` | {texts[reason.name]} |" for reason in Reason]
    return "\n".join(["| reason | meaning | what to do |", "|---|---|---|", *rows])


def _member_texts() -> Mapping[str, str]:
    """The two table cells of each reason: the meaning and the remedy."""
    (body,) = ast.parse(inspect.getsource(Reason)).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for member, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(member, ast.Assign) and isinstance(text, ast.Expr):
            (target,) = member.targets
            said = " ".join(ast.literal_eval(text.value).split())
            meaning, _, remedy = said.partition(" Do: ")
            found[ast.unparse(target)] = f"{meaning.removesuffix('.')} | {remedy}"
    return found


def settings() -> str:
    """The table of settings, from ``sql_ext/settings.json``."""
    listed = json.loads((HOME / "sql_ext" / "settings.json").read_text(encoding="utf-8"))
    rows = []
    for key, setting in listed["settings"].items():
        doc = setting["doc"]
        for phrase, target in _LINKS.items():
            doc = doc.replace(phrase, f"[{phrase}]({target})")
        default = setting.get("default") or _DEFAULTS[key]
        if setting["where"] == "driver":
            doc = f"driver setting: {doc}"
        rows.append(f"| `{key}` | {default} | {doc} |")
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
