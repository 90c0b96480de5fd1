"""If strings or decimals share a long prefix, queries read few files, and lose no row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spark_session import Lab

FILES = 20
DEEP = "https://www.deep-sea.com/articles/"
HOST = "element_at(array('amber', 'bluebell', 'cobalt', 'deep-sea'), cast(id DIV 5000 AS int) + 1)"


@pytest.fixture(scope="module")
def pages(lab: Lab) -> Iterator[Lab]:
    """A table of page URLs from four hosts, in order.

    One URL in a hundred is in a file of URLs that are far away in the order. A few URLs are
    malformed.
    """
    url = f"concat('https://www.', {HOST}, '.com/articles/', lpad(cast(id AS string), 8, '0'), '/')"
    with lab.database("pages"):
        lab.sql(f"""
            CREATE TABLE t USING parquet AS
            SELECT id AS row, {url} AS url, cast({url} AS binary) AS bin,
              cast(id AS decimal(38,0)) + 7000000000000000000000000 AS ticket
            FROM (SELECT CASE WHEN id % 100 = 7 THEN (id * 7919) % 20000 ELSE id END AS id
                  FROM range(0, 20000, 1, {FILES}))""")
        lab.sql("""
            INSERT INTO t SELECT -id, element_at(array('', 'https://www.b', 'zzz', 'https://'), id),
              element_at(array(X'', X'00', X'FFFFFFFFFFFFFFFFFFFF', X'6800FF80'), id),
              element_at(array(0BD, NULL, -99999999999999999999999999999999999999BD, 1BD), id)
            FROM (SELECT cast(id AS int) AS id FROM range(1, 5, 1, 1))""")
        lab.sql("CREATE SIEVE INDEX ON t (url, bin, ticket)")
        yield lab


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("url = 'https://www.cobalt.com/articles/00012344/'", 2),
        ("url = 'https://www.cobalt.com/articles/00012344/x'", 2),
        ("url IN ('https://www.amber.com/articles/00000012/', '', 'zzz')", 3),
        ("url LIKE 'https://www.bluebell.com/articles/000051%'", 5),
        ("url LIKE 'https://www.b%' AND url < 'https://www.bluebell.com/articles/00005010'", 5),
        (f"url BETWEEN '{DEEP}00019990/' AND '{DEEP}00019999/'", 3),
        ("url < 'https://www.a'", 1),
        ("url > 'https://www.deep-sea.d'", 1),
        ("url >= 'zzz' OR url = 'https://www.b'", 1),
        ("bin = cast('https://www.cobalt.com/articles/00012344/' AS binary)", 2),
        ("bin IN (X'', X'6800FF80')", 1),
        ("bin > X'FF'", 1),
        ("ticket = 7000000000000000000012344", 2),
        ("ticket = 7000000000000000000012344.5", 2),
        ("ticket BETWEEN 7000000000000000000000500 AND 7000000000000000000000510", 3),
        ("ticket < 2", 1),
    ],
)
def test_few_files_are_read_and_none_missed(pages: Lab, where: str, files: int) -> None:
    """Queries distinguish strings that share 30 bytes, and decimals that share 19 digits."""
    pages.check(f"SELECT count(*), sum(row) FROM t WHERE {where}", at_most=files)


@pytest.mark.parametrize("where", ["url != ''", "url LIKE '%9/'", "bin >= X''", "ticket > -1"])
def test_predicates_that_keep_most_rows_miss_none(pages: Lab, where: str) -> None:
    """Negations and open ranges lose no row, because Sieve rounds code ranges outwards."""
    pages.check(f"SELECT count(*), sum(row) FROM t WHERE {where}")
