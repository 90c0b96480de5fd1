"""Reasons: the closed list of causes why an index was not used, or a file was read anyway.

The text below each reason says what the reason means, and after ``Do:`` what a user can do.
``docs/tables.py`` writes these texts into ``docs/sql.md``. The shim has the same list.
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
    """the index lies in a folder that this session does not honour. Do: list the folder in
    `spark.sieve.roots`"""
    DISABLED = "disabled"
    """by `spark.sieve.enabled = false` or ALTER ... DISABLE. Do: switch it on again"""
    NO_PREDICATE = "no-predicate"
    """the scan filters on no indexed column. Do: index the column that queries filter on"""
    UNSUPPORTED_PREDICATE = "unsupported-predicate"
    """no index can answer the filter on the column, such as an OR with a partition column, or a
    part above the limit of 10,000 parts, 200,000 listed values or 200 levels. Do: compare the bare
    column with a constant, or index the expression or the parts of a text
    ([expressions](#expressions)); write many ORs as IN or UNION; see [predicates](#predicates)"""
    UNBOUNDED = "unbounded"
    """the index cannot show that enough rows lie at the end that the query wants ([first
    rows](#first-rows), MIN, MAX). Do: nothing"""
    READER_CHANGED = "reader-changed"
    """the session reads the column in another way than the build: another type, default, Spark
    version (3.5, 4.0 and 4.1 read Parquet and ORC alike, except times), setting, option or time
    zone; in CSV and JSON, and where Hudi merges, another schema. Do: SHOW names the difference and
    what to type"""
    INDEX_GONE = "index-gone"
    """the index's files do not exist. Do: DROP SIEVE INDEX, then CREATE"""
    INDEX_CORRUPT = "index-corrupt"
    """a file of the index is damaged. Do: REFRESH SIEVE INDEX ... FULL; if SHOW says `failed`, DROP
    and CREATE"""
    VERSION_TOO_NEW = "version-too-new"
    """a newer Sieve wrote the index. Do: upgrade this one, or DROP and CREATE"""
    VERSION_TOO_OLD = "version-too-old"
    """an earlier Sieve built the index in another format. Do: REFRESH SIEVE INDEX"""
    # Reasons that concern a file.
    NEW_FILE = "new-file"
    """the file was added after the build. Do: REFRESH SIEVE INDEX"""
    CHANGED_FILE = "changed-file"
    """length or time of the file differ from the build; or a [Hudi](hudi.md) slice has new log
    files, or no version knew it as it was at an earlier instant. Do: REFRESH SIEVE INDEX"""
    UNPROVEN_FILE = "unproven-file"
    """the build proved nothing about the file: it has no rows, was not read in full, or has a
    [damaged record](#csv-and-json). Do: repair the file, then REFRESH SIEVE INDEX"""
    UNSETTLED_FILE = "unsettled-file"
    """the file was racy at the build: too young, or with a time in the future. Do: REFRESH SIEVE
    INDEX, once its time is past"""
    FOUND_FILE = "found-file"
    """a MERGE, UPDATE or DELETE of a Delta or Iceberg table reads again the files in which its
    first scan finds rows to change; EXPLAIN SIEVE knows only their maximum number. Do: nothing"""
    WHOLE_FILE = "whole-file"
    """only some ranges of the file can match, but opening the file for each range costs more than
    it saves, or the scan can only read whole files: it is bucketed, shows
    `_metadata.file_block_start` or `input_file_block_start()` and the like, reads text files ending
    in `.zstd`, `ignoreCorruptFiles` is set, or a plug-in replaces Spark's operators. Do: nothing"""
    # Reasons that concern keys of a join.
    KEYS_TOO_MANY = "keys-too-many"
    """a join or subquery gave more than 10,000 keys, so the scan looks up ranges that hold them.
    Do: nothing"""
    KEYS_FAILED = "keys-failed"
    """a task of the job that reads the keys of a join failed; the query fails only if the join
    meets the same failure. Do: see the driver's log"""
    JOIN_NOT_SELECTIVE = "join-not-selective"
    """the side of a join that could give keys has no predicate, and is not small. Do: nothing, or
    `spark.sieve.join.pruning = always`"""
    JOIN_TOO_COSTLY = "join-too-costly"
    """Spark broadcasts no side that may give keys, and a job for them costs too much; or Spark does
    not know the size of a partitioned table. Do: `ANALYZE TABLE ... COMPUTE STATISTICS NOSCAN`, a
    BROADCAST hint, or `spark.sieve.join.pruning = always`"""
    JOIN_NOT_REPEATABLE = "join-not-repeatable"
    """the side of a join that could give keys might give other keys when it is read again, has a
    scalar subquery, is the source of a MERGE that Spark does not broadcast, or is not the plan that
    Spark broadcasts; or the scan is in a scalar subquery, or finds the files that a copy-on-write
    statement of Iceberg rewrites. Do: in a MERGE, bound the target in `ON`, or broadcast the
    source; else nothing"""
    JOIN_BROADCAST = "join-broadcast"
    """Spark broadcasts this side of a join, so no keys are read for it; its own filters still
    select files. Do: nothing"""
    EXCHANGE_SHARED = "exchange-shared"
    """another part of the query shares the shuffle above this scan, but not the keys. Do:
    nothing"""
    # Reasons that concern a request.
    TIMEOUT = "timeout"
    """the front end did not answer within `spark.sieve.prune.timeout`. After three time-outs in a
    row scans send no requests, for 2 seconds and then up to a minute. Do: raise it, or relieve the
    driver's machine"""
    FRONT_END_DOWN = "front-end-down"
    """the Python process could not be started, or died; Sieve starts it again. Do: see the driver's
    log"""
    ERROR = "error"
    """any other failure. Do: see the driver's log"""


def labelled(reason: str, functions: Sequence[str]) -> str:
    """A reason with the functions that no index can evaluate: ``unsupported-predicate (lower)``."""
    named = functions and reason == Reason.UNSUPPORTED_PREDICATE
    return f"{reason} ({', '.join(functions)})" if named else reason
