"""Reasons: the closed list of reasons why a scan used no index, or read a file anyway.

The text below each reason says what the reason means, and after ``Do:`` what a user can do.
``docs/tables.py`` writes these texts into ``docs/sql.md``. The build of the shim generates the
shim's list from this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum


class Reason(StrEnum):
    """Why a scan reads a file. The value is the word that statements and functions show."""

    # Reasons that concern an index.
    NO_INDEX = "no-index"
    """the table has no index, or its registration belongs to another table. Do: CREATE SIEVE
    INDEX"""
    ROOT_REFUSED = "root-refused"
    """the index is in a folder that this session does not trust. Do: list the folder in
    `spark.sieve.roots`"""
    DISABLED = "disabled"
    """`spark.sieve.enabled = false` or ALTER ... DISABLE switched the index off. Do: switch it on
    again"""
    NO_PREDICATE = "no-predicate"
    """the scan has no filter on an indexed column. Do: index the column that queries filter on"""
    UNSUPPORTED_PREDICATE = "unsupported-predicate"
    """no index can answer the filter on the column. Examples: an OR with a partition column, or
    more than 10,000 parts, 200,000 listed values or 200 levels. Do: compare the bare column with a
    constant, or index the expression or the parts of a text ([expressions](#expressions)); write
    many ORs as IN or UNION; see [predicates](#predicates)"""
    UNBOUNDED = "unbounded"
    """the index cannot prove that it knows enough first rows for the query ([first
    rows](#first-rows), MIN, MAX). Do: nothing"""
    READER_CHANGED = "reader-changed"
    """the session reads the column differently from the build: type, default, Spark version,
    setting, option or time zone changed (Spark 3.5, 4.0 and 4.1 read Parquet and ORC alike, except
    times). In CSV and JSON, and if Hudi merges records, any change of the schema counts. Do: run
    the statement that SHOW names"""
    INDEX_GONE = "index-gone"
    """the index's files do not exist. Do: DROP SIEVE INDEX, then CREATE"""
    INDEX_CORRUPT = "index-corrupt"
    """a file of the index is damaged. Do: REFRESH SIEVE INDEX ... FULL; if SHOW says `failed`, DROP
    and CREATE"""
    VERSION_TOO_NEW = "version-too-new"
    """a newer Sieve wrote the index. Do: upgrade Sieve, or DROP and CREATE"""
    VERSION_TOO_OLD = "version-too-old"
    """an earlier Sieve built the index in another format. Do: REFRESH SIEVE INDEX"""
    # Reasons that concern a file.
    NEW_FILE = "new-file"
    """the file was added after the build. Do: REFRESH SIEVE INDEX"""
    CHANGED_FILE = "changed-file"
    """the file's length or time differ from those of the build. Or a [Hudi](hudi.md) slice has new
    log files, or no version covers its state at the queried instant. Do: REFRESH SIEVE INDEX"""
    UNPROVEN_FILE = "unproven-file"
    """the build could not index the file, because the file has no rows, was not read in full, or
    has a [damaged record](#csv-and-json). Do: repair the file, then REFRESH SIEVE INDEX"""
    UNSETTLED_FILE = "unsettled-file"
    """the file was too young at the build, or its time was in the future. Do: REFRESH SIEVE INDEX
    after the file's time"""
    FOUND_FILE = "found-file"
    """the first scan of a MERGE, UPDATE or DELETE of a Delta or Iceberg table finds files with rows
    to change, and a later scan reads these files again. EXPLAIN SIEVE knows only their maximum
    number. Do: nothing"""
    WHOLE_FILE = "whole-file"
    """only some ranges of the file can match, but opening the file for each range would cost more
    than it saves, or the scan reads only whole files. Such a scan reads a bucketed table or `.zstd`
    text files, uses `_metadata.file_block_start`, `input_file_block_start()` or the like, or runs
    under `ignoreCorruptFiles` or with a plug-in that replaces Spark's operators. Do: nothing"""
    # Reasons that concern keys of a join.
    KEYS_TOO_MANY = "keys-too-many"
    """a join or subquery supplied so many keys that the scan looks up
    [ranges](#joins-and-subqueries) that contain the keys. Do: nothing"""
    KEYS_FAILED = "keys-failed"
    """the job that reads the keys of a join failed. The query fails only if the join fails in the
    same way. Do: see the driver's log"""
    JOIN_NOT_SELECTIVE = "join-not-selective"
    """the join side that could supply keys has no predicate and is not small. Do: nothing, or
    `spark.sieve.join.pruning = always`"""
    JOIN_TOO_COSTLY = "join-too-costly"
    """Spark broadcasts no side that can supply keys, and a separate job would cost too much, or
    Spark does not know the size of a partitioned table. Do: `ANALYZE TABLE ... COMPUTE STATISTICS
    NOSCAN`, a BROADCAST hint, or `spark.sieve.join.pruning = always`"""
    JOIN_NOT_REPEATABLE = "join-not-repeatable"
    """the join side that could supply keys might return other keys on a second read, has a scalar
    subquery, or is not the plan that Spark broadcasts. Or the scan is in a scalar subquery, or
    finds the files that a copy-on-write statement of Iceberg rewrites. Do: in a MERGE, restrict the
    target in `ON`, or broadcast the source; otherwise nothing"""
    JOIN_BROADCAST = "join-broadcast"
    """Spark broadcasts this join side, so Sieve reads no keys for it. The side's own filters still
    select files. Do: nothing"""
    EXCHANGE_SHARED = "exchange-shared"
    """another part of the query uses the same shuffle above this scan, but has other keys. Do:
    nothing"""
    # Reasons that concern a request.
    TIMEOUT = "timeout"
    """the front end did not answer within `spark.sieve.prune.timeout`. After three time-outs in a
    row, scans send no requests for 2 seconds, and later for up to a minute. Do: raise this setting,
    or reduce the load of the driver's machine"""
    FRONT_END_DOWN = "front-end-down"
    """the Python process did not start, or it died. Sieve starts it again. Do: see the driver's
    log"""
    ERROR = "error"
    """any other failure. Do: see the driver's log"""


def labelled(reason: str, functions: Sequence[str]) -> str:
    """A reason with the functions that no index can evaluate: ``unsupported-predicate (lower)``."""
    named = functions and reason == Reason.UNSUPPORTED_PREDICATE
    return f"{reason} ({', '.join(functions)})" if named else reason
