"""Finds the event logs in a folder, and reads them in all of Spark's codecs except LZF.

Spark writes one file per application, ``app-1[_attempt][.codec][.inprogress]``, or a folder
``eventlog_v2_app-1`` of numbered files, ``events_1_app-1[.codec]``. The setting
``spark.eventLog.compression.codec`` names the codec. Zstandard files have the format of the
Zstandard library. The lz4 and snappy files consist of blocks, each with a header in the form of the
Java libraries:

    lz4 (net.jpountz.lz4.LZ4BlockOutputStream)   "LZ4Block", token, three int32 LE: compressed
        length, length, checksum; then the block, uncompressed if the token's upper half is 1
    snappy (org.xerial.snappy.SnappyOutputStream)   8 bytes of magic, two int32 BE; then blocks,
        each after an int32 BE, the block's compressed length
"""

from __future__ import annotations

import gzip
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import pyarrow as pa

from sieve.errors import CorruptError, UnsupportedError

ROLLING_PREFIX: Final = "eventlog_v2_"
_PART = re.compile(r"events_(\d+)_")
_LZ4_MAGIC = b"LZ4Block"
_LZ4_RAW = 0x10
_SNAPPY_HEADER = 16
_ZSTD_READ = 1 << 14


@dataclass(frozen=True, slots=True)
class EventLog:
    """The log of one application; ``files`` are in the order in which Spark wrote them."""

    name: str
    files: tuple[Path, ...]


def find_logs(folder: Path) -> list[EventLog]:
    """The logs in a folder, sorted by name.

    The path can also be the folder or the file that contains a single application's log.
    """
    if folder.is_file():
        return [EventLog(folder.name, (folder,))]
    if folder.name.startswith(ROLLING_PREFIX):
        return [_rolling(folder)]
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name.startswith(ROLLING_PREFIX):
            found.append(_rolling(path))
        elif path.is_file() and not path.name.startswith("."):
            found.append(EventLog(path.name, (path,)))
    return found


def read_lines(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file, decompressed.

    Raises:
        UnsupportedError: the file is compressed with LZF.
        CorruptError: the file is unreadable or damaged, or it ends in the middle of a compressed
            block.
    """
    suffix = path.name.removesuffix(".inprogress").removesuffix(".compact").rpartition(".")[2]
    try:
        yield from _CODECS.get(suffix, _plain)(path)
    except (OSError, EOFError, pa.ArrowException, struct.error, ValueError) as error:
        raise CorruptError("SIEVE_EVENT_LOG", f"{path} cannot be read on: {error}") from error


def _rolling(folder: Path) -> EventLog:
    numbered = [(match, path) for path in folder.iterdir() if (match := _PART.match(path.name))]
    numbered.sort(key=lambda found: (int(found[0][1]), found[1].name))
    return EventLog(folder.name, tuple(path for _, path in numbered))


def _plain(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _gzip(path: Path) -> Iterator[bytes]:
    with gzip.open(path) as file:
        yield from file


def _zstd(path: Path) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")
    # A read at the end of an unfinished log returns no bytes, because the log ends inside a frame.
    return _lines(iter(lambda: stream.read(_ZSTD_READ), b""))


def _lz4(path: Path) -> Iterator[bytes]:
    return _lines(_blocks(path, _lz4_block))


def _snappy(path: Path) -> Iterator[bytes]:
    return _lines(_blocks(path, _snappy_block, _SNAPPY_HEADER))


def _refused(path: Path) -> Iterator[bytes]:
    raise UnsupportedError(
        "SIEVE_EVENT_LOG", f"{path} is compressed with LZF, which sieve advise does not read"
    )


_CODECS: Final[dict[str, Callable[[Path], Iterator[bytes]]]] = {
    "zstd": _zstd,
    "zst": _zstd,
    "lz4": _lz4,
    "snappy": _snappy,
    "gz": _gzip,
    "lzf": _refused,
}


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Joins chunks, which can end anywhere in a line, and yields the text's lines."""
    begun: list[bytes] = []
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*begun, line, b"\n"])
            begun = []
        begun.append(rest)
    if any(begun):
        yield b"".join(begun)


def _blocks(
    path: Path, read_block: Callable[[IO[bytes]], bytes | None], header: int = 0
) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.read(header)
        yield from iter(lambda: read_block(file), None)


def _lz4_block(file: IO[bytes]) -> bytes | None:
    head = file.read(21)
    if not head:
        return None
    magic, token, packed, length, _ = struct.unpack("<8sBiii", head)
    if magic != _LZ4_MAGIC:
        raise ValueError("no LZ4 block where one should begin")
    block = file.read(packed)
    if token & 0xF0 == _LZ4_RAW:
        return block
    return _decompressed("lz4_raw", block, length)


def _snappy_block(file: IO[bytes]) -> bytes | None:
    head = file.read(4)
    if not head:
        return None
    block = file.read(struct.unpack(">i", head)[0])
    return _decompressed("snappy", block, _snappy_length(block))


def _snappy_length(block: bytes) -> int:
    """Decodes a block's uncompressed length from its first bytes: 7 bits per byte, lowest first."""
    length = 0
    for place, byte in enumerate(block[:5]):
        length |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return length


def _decompressed(codec: str, block: bytes, length: int) -> bytes:
    return bytes(pa.decompress(block, decompressed_size=length, codec=codec)) if length else b""
