"""Wire format of prune requests: converts JSON to typed requests, and typed answers to JSON.

In an answer, flags of files are bits: bit i is the flag of file i (lowest bit first). Integers are
in 64-bit little-endian form. Bits and integers are compressed with zstd and encoded in base64. The
driver sends the group of each file as a 32-bit integer, compressed with zlib and encoded in base64.

A request contains ``table`` (the table's identity), ``registrations`` (properties of the table),
``settings``, ``predicate`` and ``fingerprints``. ``fingerprints`` contains the hashes of two reader
fingerprints. One hash is for the settings of the relation's session, and one hash is for the
settings of the executing session. If the front end has asked for fingerprints, the request also
contains ``parts``, which maps each hash to its fingerprint. The request of a time-travel query also
contains ``instant``. If Hudi lists partially visible slices for the query, the request contains
``in_part``.

An answer contains ``dictionary``, ``skip``, ``used``, ``narrows``, ``reasons``, ``functions`` and
``detail``. If the scan reads only some ranges of some files, ``parts`` describes these files. In
``parts``, ``files`` is the number of files that the scan reads in part. ``sizes`` contains the size
in bytes of each range except the last range of each file. ``skip`` contains a bit for each range.
``rows`` contains three integers per file: the file's number minus the previous file's number, the
number of ranges, and the size of the footer in bytes. The answer has two flags for a partially
visible slice. ``skip`` is about the slice's rows at the query's instant. ``skip_in_part`` is about
all rows that were ever written to the slice.

If the front end does not know a fingerprint's hash, its answer contains only ``unknown``. The
driver then repeats the request with ``parts``.

A dictionary of files contains ``files`` (the number of files), ``rows`` and ``paths``. ``rows``
contains four integers per file: the file's length, its modification time, the number of cuts
between its ranges, and the length of its path in bytes. ``paths`` is the concatenation of all paths
in UTF-8.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sieve.arrays.dtypes import Counts, Flags
from sieve.metadata.column_reader import Parts
from sieve.metadata.records import identity_from
from sieve.metadata.registration import parse_registration
from sieve.metadata.timestamps import iso
from sieve.predicate.parse_predicate import parse
from sieve.reader.packed_cuts import FileParts
from sieve.reader.packed_files import PackedFiles
from sieve.reader.pruner import Pruner
from sieve.reader.request import PruneAnswer, PruneRequest
from sieve.reader.top_k import Order, Present
from sql_ext.driver.roots import Roots
from sql_ext.driver.settings import valid_settings
from sql_ext.frontend.fingerprints import Fingerprints
from sql_ext.frontend.request_queue import Request


class PruneService:
    """Answers the prune requests of a driver's scans.

    Args:
        roots: checks whether a folder may contain indexes.
        pruner: decides which files a scan can skip, from the current versions of indexes.
    """

    def __init__(self, roots: Roots, pruner: Pruner) -> None:
        self._roots = roots
        self._pruner = pruner
        self._fingerprints = Fingerprints()

    def prune(self, request: Request) -> Mapping[str, Any]:
        """Answers a scan's request; docs/architecture.md contains an example.

        The request's body contains the table, registrations, fingerprints, predicate and settings.
        """
        body = request.body
        fingerprints = self._fingerprints.of(body["fingerprints"], body.get("parts", {}))
        if fingerprints is None:
            return {"unknown": True}
        return to_wire(self._pruner.prune(self._from_wire(request, fingerprints)))

    def dictionary(self, request: Request) -> Mapping[str, Any]:
        """The dictionary that assigns files to the bits of an answer. The driver caches it."""
        return dictionary_to_wire(self._pruner.numbering(request.body["dictionary"]).files)

    def _from_wire(self, request: Request, fingerprints: tuple[Parts, ...]) -> PruneRequest:
        body = request.body
        settings = valid_settings(body["settings"])
        table = identity_from(body["table"])
        instant = body.get("instant")
        return PruneRequest(
            table=table,
            registrations=tuple(map(parse_registration, body["registrations"].values())),
            fingerprints=fingerprints,
            predicate=parse(body["predicate"]),
            instant=None if instant is None else iso(instant),
            partially_visible=body.get("in_part", False),
            timeout_s=settings.prune_timeout_s,
            ttl_s=settings.registry_ttl_s,
            cache_bytes=settings.cache_bytes,
            check_root=lambda root: self._roots.check(
                root, table.namespace, settings, request.session
            ),
            orders=tuple(map(_order, body.get("top_k", ()))),
            present=_present(body["present"]) if "present" in body else None,
        )


def _order(wire: Mapping[str, Any]) -> Order:
    return Order(
        column=tuple(wire["col"]),
        descending=wire["descending"],
        nulls=wire["nulls"],
        rows=wire["rows"],
        ties=wire["ties"],
        against=parse(wire["against"]),
    )


def _present(wire: Mapping[str, Any]) -> Present:
    sent = np.frombuffer(zlib.decompress(base64.b64decode(wire["groups"])), "<i4").astype(np.int64)
    hide = sent < -1
    return Present(wire["dictionary"], np.where(hide, -2 - sent, sent), hide)


def dictionary_to_wire(files: PackedFiles) -> Mapping[str, Any]:
    """A dictionary as JSON members that the driver can read."""
    return {"files": files.n, "rows": _text(files.rows), "paths": _text(files.text)}


def to_wire(answer: PruneAnswer) -> Mapping[str, Any]:
    """An answer as JSON members that the driver can read."""
    wire: dict[str, Any] = {
        "reasons": dict(answer.reasons),
        "functions": list(answer.functions),
        "detail": answer.detail,
    }
    if answer.skip is None:
        return wire
    wire |= {
        "dictionary": answer.skip.numbering,
        "skip": _bits(answer.skip.skip),
        "used": list(answer.skip.used),
        "narrows": answer.skip.narrows,
    }
    if len(answer.skip.parts.numbers):
        wire["parts"] = _parts(answer.skip.parts)
    if answer.skip.partial is not None:
        wire["skip_in_part"] = _bits(answer.skip.partial.skip)
        wire["known_in_part"] = _bits(answer.skip.partial.known)
    return wire


def _parts(parts: FileParts) -> Mapping[str, Any]:
    steps = np.diff(parts.numbers, prepend=0)
    return {
        "files": len(parts.numbers),
        "rows": _numbers(np.stack([steps, parts.counts, parts.footers], axis=1)),
        "sizes": _numbers(parts.sizes),
        "skip": _bits(parts.skip),
    }


def _bits(flags: Flags) -> str:
    return _zipped(np.packbits(flags, bitorder="little"))


def _numbers(values: Counts) -> str:
    return _zipped(np.ascontiguousarray(values, "<i8"))


def _zipped(array: npt.NDArray[Any]) -> str:
    return _text(pa.compress(pa.py_buffer(array), codec="zstd", asbytes=True))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
