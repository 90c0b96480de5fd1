"""If the metastore dies during a statement, the statement succeeds or fails with a clear error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from driver import Driver, DriverError
from flaky_metastore import CutMetastore, never

POINT = "SELECT id FROM shop.t WHERE id = 7"
CREATE = "CREATE SIEVE INDEX ON shop.t (id) OPTIONS (error = 1)"


@pytest.fixture
def index(user: Driver, server: CutMetastore) -> Iterator[Path]:
    """Creates an index and yields its folder; at the end, drops the index if it still exists."""
    user.sql(CREATE)
    (property_,) = user.sql("SHOW TBLPROPERTIES shop.t ('sieve.index.id_sieve')")
    yield root(server) / json.loads(property_[1])["uuid"]
    user.sql("DROP SIEVE INDEX IF EXISTS id_sieve ON shop.t")
    assert folders(server) == []


def root(server: CutMetastore) -> Path:
    """The root folder, which contains the indexes of the database."""
    return Path(server.conf["spark.sql.warehouse.dir"], "shop.db", ".sieve")


def folders(server: CutMetastore) -> list[str]:
    """The names of the index folders below the root."""
    return [path.name for path in root(server).iterdir()]


def is_registration(request: bytes) -> bool:
    """Returns whether a client's request writes the table property that registers the index."""
    return b"alter_table" in request and b"sieve.index.id_sieve" in request


@pytest.mark.long
def test_statements_fail_without_a_metastore(
    user: Driver, server: CutMetastore, index: Path
) -> None:
    """Without a metastore, statements fail and add or delete no file of the index."""
    server.vanish()
    before = set(root(server).rglob("*"))
    for statement in (
        "REFRESH SIEVE INDEX ON shop.t FULL", "ALTER SIEVE INDEX id_sieve ON shop.t DISABLE",
        "DROP SIEVE INDEX ON shop.t (id)", "CREATE SIEVE INDEX ON shop.t (s)",
    ):  # fmt: skip
        with pytest.raises(DriverError, match=r"(?i)metastore"):
            user.sql(statement)
    assert set(root(server).rglob("*")) == before
    server.start()
    assert user.sql("SHOW SIEVE INDEXES ON shop.t")[0][6] == "ready"
    assert user.files(POINT) == 1
    assert index.exists()


@pytest.mark.long
def test_metastore_gone_after_a_version_is_published(
    user: Driver, server: CutMetastore, index: Path
) -> None:
    """If the metastore vanishes after a version is published, REFRESH and ALTER still succeed."""
    server.before = lambda _: (index / "versions" / "2.json").exists()
    assert user.sql("REFRESH SIEVE INDEX ON shop.t FULL")[0][1] == 2
    server.start()
    assert user.files(POINT) == 1
    server.before = lambda _: (index / "versions" / "3.json").exists()
    user.sql("ALTER SIEVE INDEX id_sieve ON shop.t DISABLE")
    server.start()
    assert user.sql("SHOW SIEVE INDEXES ON shop.t")[0][6] == "disabled"
    assert user.files(POINT) == 4


@pytest.mark.long
def test_metastore_gone_during_drop(user: Driver, server: CutMetastore, index: Path) -> None:
    """If the metastore vanishes during DROP, the error tells the user to run DROP again.

    Queries do not use the half-dropped index. A second DROP deletes the index's files and
    registration.
    """
    server.before = lambda _: (index / "versions" / "2.json").exists()
    with pytest.raises(DriverError, match=r"(?i)metastore.*DROP SIEVE INDEX again"):
        user.sql("DROP SIEVE INDEX ON shop.t (id)")
    server.start()
    assert user.sql("SHOW SIEVE INDEXES ON shop.t")[0][6] == "gone"
    assert (user.sql(POINT), user.files(POINT)) == ([[7]], 4)
    user.sql("DROP SIEVE INDEX ON shop.t (id)")
    assert not index.exists()
    assert "sieve.index" not in str(user.sql("SHOW TBLPROPERTIES shop.t"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("moment", "shown"),
    [("after", ["ready"]), ("before", [])],
)
def test_metastore_gone_during_registration(
    user: Driver, server: CutMetastore, moment: str, shown: list[str]
) -> None:
    """If the metastore sends CREATE no reply, the error tells the user to run SHOW.

    If the metastore has stored the registration, the index is complete. If the metastore has not
    stored the registration, no index exists; a second CREATE makes an index.
    """
    setattr(server, moment, is_registration)
    with pytest.raises(DriverError, match=r"SIEVE_REGISTRATION_UNKNOWN.*SHOW SIEVE INDEXES"):
        user.sql(CREATE)
    server.start()
    assert [row[6] for row in user.sql("SHOW SIEVE INDEXES ON shop.t")] == shown
    user.sql(CREATE.replace("INDEX", "INDEX IF NOT EXISTS"))
    assert user.sql("SHOW SIEVE INDEXES ON shop.t")[0][6] == "ready"
    assert user.files(POINT) == 1
    user.sql("DROP SIEVE INDEX ON shop.t (id)")
    assert user.files(POINT) == 4
    # The first CREATE did not know whether its registration was stored. So the index folder of this
    # CREATE remains, even if the registration was lost.
    assert len(folders(server)) == (0 if shown else 1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("times", "moment"),
    [
        pytest.param(1, "before", marks=pytest.mark.long),
        (1, "after"),
        (100, "before"),
        pytest.param(100, "after", marks=pytest.mark.long),
    ],
)
def test_connection_cut_during_registration(
    user: Driver, server: CutMetastore, moment: str, times: int
) -> None:
    """If the connection breaks during CREATE, the client retries, or CREATE checks the outcome.

    CREATE does not repeat a write that the metastore has applied. A write that the metastore did
    not receive changes nothing. At most one index folder remains.
    """
    left = times

    def cut(request: bytes) -> bool:
        nonlocal left
        left -= is_registration(request)
        return left >= 0 and is_registration(request)

    server.hangs_up = True
    setattr(server, moment, cut)
    if (moment, times) == ("before", 100):
        with pytest.raises(DriverError):
            user.sql(CREATE)
        assert user.sql("SHOW SIEVE INDEXES ON shop.t") == []
    else:
        user.sql(CREATE)
        assert [row[6] for row in user.sql("SHOW SIEVE INDEXES ON shop.t")] == ["ready"]
        assert user.files(POINT) == 1
    assert left < times
    server.before = server.after = never
    user.sql("DROP SIEVE INDEX IF EXISTS id_sieve ON shop.t")
    assert user.files(POINT) == 4
    assert len(folders(server)) <= 1
