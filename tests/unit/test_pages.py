"""Pages for developers: their list of decisions, paths, and example of the read path."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from sieve.encoding.encoder import Encoder
from sieve.predicate.evaluate import evaluate
from sieve.predicate.parse_predicate import parse
from sieve.reader.extents import LocationEnds, bounds, extents
from tests.wire import flags

HOME = Path(__file__).resolve().parents[2]
DECISIONS = HOME / "docs" / "decisions"
PAGES = sorted([*HOME.glob("*.md"), *(HOME / "docs").rglob("*.md")])
READ_PATH = (HOME / "docs" / "architecture.md").read_text(encoding="utf-8")
FOLDERS = ("sieve", "sql_ext", "udfs", "tests", "bench", "docs")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOME)))
def test_paths_in_pages_exist(page: Path) -> None:
    """A page names only existing paths in the project's folders, and existing Scala sources."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for path in re.findall(r"`([\w.-]+/[\w./-]*)`", text):
        if path.split("/")[0] in FOLDERS:
            assert (HOME / path).exists(), f"{page.name} names {path}"
    for source in re.findall(r"`([\w./]+\.scala)`", text):
        assert list((HOME / "sql_ext" / "jvm").rglob(source)), f"{page.name} names {source}"


def test_words_of_the_glossary_have_their_modules() -> None:
    """Each word of the glossary names a Python module, Scala source or folder that exists."""
    python = [p for top in ("sieve", "sql_ext") for p in (HOME / top).rglob("*.py")]
    scala = (HOME / "sql_ext" / "jvm" / "src").rglob("*.scala")
    known = {str(p.relative_to(HOME).with_suffix("")) for p in python}
    known |= {str(p.relative_to(HOME)) for p in scala}
    known |= {folder + "/" for name in tuple(known) for folder in _folders(name)}
    page = (HOME / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = page.partition("## Words of the code")[2]
    where = re.findall(r"\((`[^()]+`)\)$", words, re.MULTILINE)
    assert len(where) >= words.count("\n- **")
    for name in re.findall(r"`([^`]+)`", " ".join(where)):
        assert any(one == name or one.endswith("/" + name) for one in known), name


def _folders(name: str) -> list[str]:
    return [str(folder) for folder in Path(name).parents if str(folder) != "."]


def test_list_of_decisions_is_complete() -> None:
    """The list of decisions has all decisions in order, with their numbers and headings."""
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    row = r"^(\d+)\. \[(.+)\]\((.+)\)$"
    listed = [(f"{n}. {title}", name) for n, title, name in re.findall(row, index, re.MULTILINE)]
    records = sorted(DECISIONS.glob("[0-9]*.md"))
    headings = [record.read_text(encoding="utf-8").splitlines()[0] for record in records]
    assert listed == [
        (h.removeprefix("# "), r.name) for h, r in zip(headings, records, strict=True)
    ]


class Example:
    """An index on a column of the three files in the example: ranges of keys, counts of NULL."""

    null_proof = True

    def __init__(self, type_name: str, ranges: list[list[tuple[int, int]]], nulls: list[int]):
        self.encoder = Encoder.for_type(type_name)
        self._files = list(zip(ranges, nulls, strict=True))

    def keep(self, wanted):
        """Returns bool[3], one flag per file.

        A flag is true if a range of the file overlaps a wanted interval, or if NULL is wanted.
        """
        pairs = wanted.intervals.tolist()
        return np.array(
            [
                any(low <= last and first <= high for first, last in pairs for low, high in ranges)
                or (wanted.null and nulls > 0)
                for ranges, nulls in self._files
            ]
        )


RANGES = [[(1, 400), (7000, 7000)], [(401, 800)], [(801, 1200)]]
INDEXES = {
    ("id",): Example("bigint", RANGES, [0, 0, 0]),
    ("day",): Example("date", [[(100, 103)], [(104, 107)], [(108, 111)]], [0, 3, 0]),
}


def _keep(tree):
    return evaluate(parse(tree), INDEXES, 3).keep


def test_example_of_the_read_path_skips_the_same_files() -> None:
    """In the example of the read path, the page's bitmap and `evaluate` skip the same files."""
    example = READ_PATH.partition("## Example")[2].partition("## The wire")[0]
    tree, answer = map(json.loads, re.findall(r"```json(.*?)```", example, re.DOTALL))
    assert flags(answer["skip"], 3).tolist() == (~_keep(tree)).tolist()
    used = evaluate(parse(tree), INDEXES, 3).used
    assert answer["used"] == [f"{column[0]}_sieve@1" for column in sorted(used)]


UNKNOWN = {"op": "unknown", "why": "no index", "names": ["note"]}
MIGHT, CANNOT = ({"op": "=", "col": ["id"], "value": value} for value in (500, 6000))


@pytest.mark.parametrize("op", ["and", "or"])
def test_truth_tables_of_the_read_path_are_right(op: str) -> None:
    """In the truth tables of the page, each cell is what `evaluate` returns for AND or OR."""
    table = READ_PATH.partition(f"| {op.upper()} | might |")[2].partition("\n\n")[0]
    parts = {"might": MIGHT, "cannot": CANNOT, "unknown": UNKNOWN}
    rows = re.findall(r"^\| \*\*(\w+)\*\* \| (\w+) \| (\w+) \| (\w+) \|$", table, re.MULTILINE)
    assert [row[0] for row in rows] == list(parts)
    for left, *cells in rows:
        for right, cell in zip(parts, cells, strict=True):
            verdict = evaluate(parse({"op": op, "args": [parts[left], parts[right]]}), INDEXES, 3)
            assert bool(verdict.keep[1]) == (cell != "cannot"), (left, op, right)
            assert bool(verdict.used) == (cell != "unknown"), (left, op, right)


@pytest.mark.parametrize(
    ("tree", "skipped"),
    [
        (CANNOT, "a, b, c"),
        ({"op": "=", "col": ["id"], "value": 7000}, "b, c"),
        ({"op": "or", "args": [MIGHT, UNKNOWN]}, "none"),
        ({"op": "and", "args": [MIGHT, UNKNOWN]}, "a, c"),
        ({"op": "!=", "col": ["id"], "value": 500}, "none"),
        ({"op": "is not null", "col": ["day"]}, "none"),
    ],
)
def test_page_names_the_skipped_files_of_each_variation(tree, skipped: str) -> None:
    """For each variation of the example, the page names the skipped files."""
    names = [name for name, kept in zip("abc", _keep(tree), strict=True) if not kept]
    assert (", ".join(names) or "none") == skipped
    assert f"| {skipped} |" in READ_PATH


def test_bounds_of_the_read_path_are_right() -> None:
    """For LIMIT 1, 2 and 10, the page states the bounds that `bounds` computes."""
    spans = [(*span, at) for at, spans in enumerate(RANGES) for span in spans]
    low, high, location = np.array(spans).T
    apart, known = low < high, np.ones(len(spans), np.bool_)
    ends = LocationEnds(np.stack([low, low, high, high]), location, known, known, apart)
    steps = extents(ends, np.array([401, 400, 400])).steps
    found = [bounds(steps, np.zeros(3, np.int64), np.array([k]))[0][0] for k in (1, 2, 10)]
    assert found == [1, 400, 800]
    said = READ_PATH.partition("## Top-k queries")[2]
    assert "The bound is 800. The scan skips c" in said
    assert "`LIMIT 1` has the bound 1, `LIMIT 2` the bound 400" in said


SITE = (HOME / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]


@pytest.mark.parametrize("name", re.findall(r"([\w/.-]+\.md)$", SITE, re.MULTILINE))
def test_page_of_the_site_begins_with_a_sentence(name: str) -> None:
    """After its heading, a page of the site begins with a sentence, not with a table or code."""
    page = HOME / "docs" / name
    text = (page if page.exists() else HOME / name).read_text(encoding="utf-8")
    heading, _, rest = text.partition("\n")
    assert heading.startswith("# ")
    assert re.match(r"\n[A-Z][^\n|`#]{20,}", rest), name
