"""Shared storage: executors must prove that they can read the driver's files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PythonException

from sieve.errors import UnavailableError
from sieve.indexing.segment_tasks import run_row
from sieve.indexing.shared_storage import named_if_unseen, not_shared, on_this_machine, seen_by_all
from sieve.reader.run_file import SCHEMA
from tests.fake_frames import Cluster, Frame

ROW = run_row("intervals", [1, 2, 3, 4, 5], b"x").to_pylist()


def rows(master: str) -> Frame:
    """A frame with one row of a run file."""
    types: dict[str, pa.DataType] = dict(zip(SCHEMA.names, SCHEMA.types, strict=True))
    return Frame(types, [ROW], Cluster(master))


@pytest.mark.parametrize(
    ("master", "witness", "proves"),
    [
        ("local[2]", "file:/t/w", False),
        ("local", "file:/t/w", False),
        ("local-cluster[2,1,1024]", "file:/t/w", True),
        ("spark://host:7077", "file:/t/w", True),
        ("yarn", "file:/t/w", True),
        ("yarn", "hdfs://host/t/w", False),
        ("yarn", "s3a://bucket/w", False),
        ("yarn", "abfs://host/w", False),
        ("local-cluster[2,1,1024]", "s3a://bucket/w", False),
    ],
)
def test_remote_executors_must_prove_that_they_see_files(
    master: str, witness: str, proves: bool
) -> None:
    """Remote executors must prove that they see the driver's files. HDFS and S3 count as shared."""
    given = rows(master)
    if not proves:
        assert seen_by_all(given, witness) is given
        return
    with pytest.raises(UnavailableError, match=f"cannot see {witness}"):
        seen_by_all(given, witness)
    assert on_this_machine(given.cluster) is (master.startswith("local["))  # type: ignore[arg-type]


def test_rows_pass_unchanged_if_the_file_is_seen(tmp_path: Path) -> None:
    """If each task sees the driver's file, `seen_by_all` returns the rows unchanged."""
    (tmp_path / "w").touch()
    assert seen_by_all(rows("yarn"), f"file:{tmp_path}/w").rows == ROW  # type: ignore[attr-defined]


def test_error_names_a_folder_that_a_task_does_not_see() -> None:
    """If a task does not see the driver's file, the error names the file's folder.

    Other errors are raised unchanged.
    """
    unseen = "sieve.errors.UnavailableError: [SIEVE_ROOT_NOT_SHARED] not seen"
    expected = pytest.raises(UnavailableError, match="the executors write to file:/r; set")
    with expected as told, named_if_unseen("file:/r"):
        raise PythonException(unseen)
    assert told.value.condition == not_shared("file:/r").condition == "SIEVE_ROOT_NOT_SHARED"
    with pytest.raises(PythonException, match="disk"), named_if_unseen("file:/r"):
        raise PythonException("disk")
