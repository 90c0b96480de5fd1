from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from sieve.errors import CorruptError, UnsupportedError
from sieve.workload.event_log.open_logs import find_logs, read_lines

LINES = [b'{"Event":"a"}\n', b"b" * 300_000 + b"\n", b"no line feed"]
TEXT = b"".join(LINES)


def lz4(text: bytes, size: int = 32_768) -> bytes:
    """Compresses as LZ4BlockOutputStream does; the second block is raw, and the last is empty."""
    out = b""
    for n, start in enumerate(range(0, len(text), size)):
        block = text[start : start + size]
        packed = block if n == 1 else bytes(pa.compress(block, codec="lz4_raw"))
        token = 0x15 if n == 1 else 0x25
        out += struct.pack("<8sBiii", b"LZ4Block", token, len(packed), len(block), 0) + packed
    return out + struct.pack("<8sBiii", b"LZ4Block", 0x15, 0, 0, 0)


def snappy(text: bytes, size: int = 32_768) -> bytes:
    """Compresses as SnappyOutputStream does: a header, then each block's length and bytes."""
    out = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    for start in range(0, len(text), size):
        packed = bytes(pa.compress(text[start : start + size], codec="snappy"))
        out += struct.pack(">i", len(packed)) + packed
    return out


def zstd(text: bytes) -> bytes:
    """Compresses into two frames, as in a log that was closed and then opened again."""
    return b"".join(bytes(pa.compress(part, codec="zstd")) for part in (text[:50], text[50:]))


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("app", bytes),
        ("app-1.2.inprogress", bytes),
        ("app.zstd", zstd),
        ("app.zstd.inprogress", zstd),
        ("app.zst", zstd),
        ("app.gz", gzip.compress),
        ("app.lz4", lz4),
        ("app.lz4.inprogress", lz4),
        ("app.lz4.compact", lz4),
        ("app.snappy", snappy),
        ("app.snappy", lambda text: snappy(text, 100)),
        ("app.snappy", lambda text: snappy(text, 1 << 24)),
    ],
)
def test_each_codec_gives_the_lines(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    """The name of a log shows its codec. Logs of each codec are readable, even unfinished logs."""
    (tmp_path / name).write_bytes(pack(TEXT))
    assert list(read_lines(tmp_path / name)) == LINES


@pytest.mark.parametrize("name", ["app", "app.gz", "app.zstd", "app.lz4", "app.snappy"])
def test_an_empty_log_has_no_lines(tmp_path: Path, name: str) -> None:
    """A new log in which Spark has written no event has no lines."""
    pack = {"app.gz": gzip.compress, "app.zstd": zstd}.get(name, bytes)
    (tmp_path / name).write_bytes(pack(b""))
    assert list(read_lines(tmp_path / name)) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("app.gz", gzip.compress(TEXT)[:-200]),
        ("app.gz", TEXT),
        ("app.zstd", TEXT),
        ("app.lz4", lz4(TEXT)[:-300]),
        ("app.lz4", lz4(TEXT)[:10]),
        ("app.lz4", b"LZ5Block" + lz4(TEXT)[8:]),
        ("app.snappy", snappy(TEXT)[:-10]),
        ("app.snappy", snappy(TEXT)[:18]),
    ],
)
def test_damaged_log_raises_an_error_with_its_name(tmp_path: Path, name: str, text: bytes) -> None:
    """The error for a truncated or damaged log names the file."""
    (tmp_path / name).write_bytes(text)
    lines = read_lines(tmp_path / name)
    with pytest.raises(CorruptError, match=name):
        list(lines)


def test_lines_before_the_damage_are_read(tmp_path: Path) -> None:
    """If the second block is truncated, the lines of the log's first block are still read."""
    (tmp_path / "app.lz4").write_bytes(lz4(TEXT, 14)[: 21 + 16 + 21 + 5])
    lines = read_lines(tmp_path / "app.lz4")
    assert next(lines) == LINES[0]


def test_lines_before_the_end_of_an_unfinished_frame_are_read(tmp_path: Path) -> None:
    """The last frame of a log in progress is unfinished; its complete lines are readable."""
    lines = [b"%d\n" % n for n in range(20_000)]
    whole = bytes(pa.compress(b"".join(lines), codec="zstd"))
    (tmp_path / "app.zstd.inprogress").write_bytes(whole[:-10])
    read: list[bytes] = []
    with pytest.raises(CorruptError):
        read.extend(read_lines(tmp_path / "app.zstd.inprogress"))
    assert read == lines[: len(read)]
    assert len(b"".join(read)) > len(b"".join(lines)) - (1 << 17) - (1 << 14)


def test_lzf_is_refused(tmp_path: Path) -> None:
    """The reader refuses a log with the extension lzf, and does not read its content."""
    (tmp_path / "app.lzf").write_bytes(b"ZV")
    with pytest.raises(UnsupportedError, match="LZF"):
        list(read_lines(tmp_path / "app.lzf"))


def test_logs_of_a_folder(tmp_path: Path) -> None:
    """`find_logs` sorts logs by name, and the parts of a rolling log by number."""
    for name in ("app-2", "app-1.zstd", ".app-1.zstd.crc"):
        (tmp_path / name).touch()
    (tmp_path / "other").mkdir()
    rolling = tmp_path / "eventlog_v2_app-3"
    rolling.mkdir()
    for name in ("events_10_app-3", "events_2_app-3", "appstatus_app-3", ".events_1_app-3.crc"):
        (rolling / name).touch()
    assert [(log.name, [file.name for file in log.files]) for log in find_logs(tmp_path)] == [
        ("app-1.zstd", ["app-1.zstd"]),
        ("app-2", ["app-2"]),
        ("eventlog_v2_app-3", ["events_2_app-3", "events_10_app-3"]),
    ]
    (alone,) = find_logs(rolling)
    assert [file.name for file in alone.files] == ["events_2_app-3", "events_10_app-3"]
