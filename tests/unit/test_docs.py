from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

from docs import tables
from sieve.client.spark_conf import wiring
from sieve.encoding.encoder import Encoder
from sieve.metadata.index_options import ERROR_RANGE, OPTION_NAMES, SHAPES, IndexOptions
from sieve.metadata.manifest import FORMAT, Manifest
from sieve.metadata.records import (
    BuildStats,
    LocationsRef,
    PartRef,
    RunFileRef,
    RunRef,
    TableIdentity,
)
from sieve.reader.reason import Reason
from sieve.tables.formats import COUNTED, INDEXED
from sql_ext.statements import commands, grammar_tables
from sql_ext.statements.table_functions import FUNCTIONS

HOME = Path(__file__).resolve().parents[2]
DOCS = sorted([HOME / "README.md", HOME / "CHANGELOG.md", *(HOME / "docs").rglob("*.md")])
SQL = (HOME / "docs" / "sql.md").read_text(encoding="utf-8")
FORMAT_PAGE = (HOME / "docs" / "format.md").read_text(encoding="utf-8")
SHIM = HOME / "sql_ext" / "jvm" / "src"


def _section(title: str, page: str = SQL) -> str:
    """Returns the text between a heading and the next heading of the same level."""
    depth = re.search(rf"^(#+) {re.escape(title)}$", page, re.MULTILINE)
    assert depth is not None, f"docs have no section {title}"
    rest = page[depth.end() :]
    end = re.search(rf"^#{{1,{len(depth[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def _first_column(title: str) -> set[str]:
    """Returns, for each row of a section's table, the backquoted text in the first cell."""
    return set(re.findall(r"^\| `([^`]+)` \|", _section(title), re.MULTILINE))


def test_reasons_are_those_of_the_code() -> None:
    """The reasons in the table of docs/sql.md are exactly the reasons in the code."""
    assert {str(reason) for reason in Reason} == _first_column("Reasons")


def test_errors_are_those_of_the_code() -> None:
    """The tables of docs/errors.md list each error condition of Python and Scala once."""
    sources = [
        *SHIM.rglob("*.scala"),
        *(p for top in ("sieve", "sql_ext", "udfs") for p in (HOME / top).rglob("*.py")),
    ]
    named = re.compile(r'"(SIEVE_[A-Z_]+)"')
    used = set(chain.from_iterable(named.findall(p.read_text(encoding="utf-8")) for p in sources))
    # These names are environment variables, not error conditions.
    used -= {"SIEVE_LINES", "SIEVE_METASTORE_PASSWORD", "SIEVE_SQL", "SIEVE_SQL_STEPS"}
    page = (HOME / "docs" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`SIEVE_[^|]*) \| [^|]+ \| [^|]+ \|$", page, re.MULTILINE)
    listed = re.findall(r"`(SIEVE_[A-Z_]+)`", " ".join(rows))
    assert len(listed) == len(set(listed))
    assert set(listed) == used


def _shim(name: str) -> Path:
    """Finds a Scala source of the shim by the name of its file."""
    (path,) = SHIM.rglob(name)
    return path


def test_the_tables_of_records_are_written() -> None:
    """The tables of columns, reasons and settings are exactly what docs/tables.py generates."""
    assert tables.written(SQL) == SQL


def test_every_answer_is_described() -> None:
    """docs/sql.md lists the columns of each statement, and of functions with their own columns."""
    alike = {"CreateIndex": "RefreshIndex OptimizeIndex".split()}
    for name, others in alike.items():
        same = {getattr(commands, one).result_columns for one in (name, *others)}
        assert len(same) == 1
    described = {name.partition(":")[2] for name in tables.names(SQL)}
    described |= {other for name in described for other in alike.get(name, ())}
    assert {command.__name__ for command in commands.Command.__args__} <= described
    answers = {command.result_columns for command in commands.Command.__args__}
    own = {name for name, function in FUNCTIONS.items() if function.columns not in answers}
    assert own <= described
    for name in FUNCTIONS:
        assert _section(name)


def test_counters_are_those_of_the_code() -> None:
    """The table of `sieve_status` lists exactly the counters in the code."""
    counters = _shim("Counters.scala").read_text(encoding="utf-8")
    of_function = (HOME / "udfs" / "counters.py").read_text(encoding="utf-8")
    told = re.findall(r'"(\w+)" -> \w', counters) + re.findall(r'yield "(\w+)"', of_function)
    by_reason = {"index_not_used", "unsupported_function"}
    assert set(told) | by_reason == _first_column("sieve_status")


def test_reasons_of_files_are_those_of_the_code() -> None:
    """The section of docs/sql.md on `sieve_files` lists each reason that the function returns."""
    text = (HOME / "udfs" / "files.py").read_text(encoding="utf-8")
    code = text.partition("COLUMNS")[2]
    reasons = {r for r in re.findall(r'f?"([a-z][^"]* [^"]*)"', code) if "``" not in r}
    shown = re.sub(r"id_sieve@1", "{used}", _section("sieve_files"))
    assert len(reasons) >= 9
    for reason in reasons:
        assert f"| {reason.rstrip(', ')}" in shown, reason


def test_keywords_of_the_grammar_are_shown() -> None:
    """For each keyword of the grammar, docs/sql.md has an SQL example with the keyword."""
    grammar = (HOME / "sql_ext" / "statements" / "grammar.lark").read_text(encoding="utf-8")
    keywords = set(grammar_tables.keywords(grammar)) - {"TRUE", "FALSE"}
    shown = set(re.findall(r"[A-Z]+", "".join(re.findall(r"```sql(.*?)```", SQL, re.DOTALL))))
    assert keywords <= shown


def test_options_are_those_of_the_code() -> None:
    """The table of options in docs/sql.md has each option, with its values and default."""
    assert _first_column("Options") == set(OPTION_NAMES)
    table = _section("Options")
    for shape in SHAPES:
        assert f"`{shape}`" in table
    assert f"{ERROR_RANGE[0]} to {ERROR_RANGE[1]} | {IndexOptions().error} |" in table


def test_settings_are_those_of_the_code() -> None:
    """The table of settings has exactly the settings that Python or Scala reads."""
    sources = [
        *SHIM.rglob("*.scala"),
        *(HOME / "sql_ext").rglob("*.py"),
        *(HOME / "sieve").rglob("*.py"),
    ]
    named = re.compile(r"spark\.sieve(?:\.[a-z]+)+")
    used = set(chain.from_iterable(named.findall(p.read_text(encoding="utf-8")) for p in sources))
    assert used == _first_column("Settings")


def test_every_member_of_a_manifest_is_described() -> None:
    """docs/format.md names each member of a manifest, and of the records nested in it."""
    records = (Manifest, RunRef, RunFileRef, PartRef, LocationsRef, BuildStats, TableIdentity)
    for record in records:
        for member in record.__dataclass_fields__:
            assert f"`{member}`" in FORMAT_PAGE, f"{record.__name__}.{member}"
    assert f"Format {FORMAT}." in FORMAT_PAGE


@pytest.mark.parametrize(
    "type_name",
    "boolean tinyint smallint int bigint float double "
    "date timestamp timestamp_ntz string binary".split(),
)
def test_every_type_is_described(type_name: str) -> None:
    """docs/format.md describes each indexable type's key codes, and docs/sql.md names the type."""
    assert Encoder.for_type(type_name).type == type_name
    assert f"`{type_name}`" in _section("Key codes", FORMAT_PAGE)
    assert type_name in _section("Predicates")


def test_installing_by_hand_is_described_in_full() -> None:
    """The section on installation shows each setting that `sieve conf` prints."""
    page = (HOME / "docs" / "operations.md").read_text(encoding="utf-8")
    for key in wiring(Path("/x.jar")):
        assert key in _section("Install", page)


def test_formats_are_named() -> None:
    """docs/format.md names all indexed formats, and the lack of NULL counts for CSV and JSON."""
    assert set(INDEXED) - set(COUNTED) == {"csv", "json"}
    assert all(f"`{name}`" in FORMAT_PAGE for name in INDEXED)
    assert "(not in CSV, JSON)" in FORMAT_PAGE


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(HOME)))
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link leads to an existing file, and each anchor to an existing heading."""
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            heads = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {
                re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads
            }
            assert anchor in slugs, f"{page.name} links to {target}"


@pytest.mark.parametrize(
    "page",
    [page for page in DOCS if page.parent.name != "decisions" and page.parent != HOME]
    + [HOME / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")]
    + [HOME / "docs" / "decisions" / "README.md"],
    ids=lambda page: str(page.relative_to(HOME)),
)
def test_first_sentence_of_a_page_states_its_purpose(page: Path) -> None:
    """The first sentence of a page states its purpose, for readers who come from a search."""
    title, _, first, *_ = page.read_text(encoding="utf-8").splitlines()
    assert title.startswith("# ")
    assert re.match(r"This (page|recipe|site) ", first)
