"""Wire format of prune requests: converts JSON to typed requests, and answers to JSON.

Flags are sent as bits, with file i in bit i (lowest bit first). Columns of numbers are sent as
64-bit integers, lowest byte first. Both kinds of data are compressed with zstd and encoded in
base64. The driver sends the groups of files as 32-bit integers, compressed with zlib and encoded in
base64.

A request contains ``table`` (the table's identity), ``registrations`` (properties of the table),
``settings``, ``predicate`` and ``fingerprints``. ``fingerprints`` contains the hashes of the
readers' fingerprints for the settings of the relation's session and of the executing session. If
the front end has requested the content of fingerprints, the request also contains ``parts``, by
hash. The request of a time-travel query contains ``instant``, and ``in_part`` if Hudi lists
partially visible slices.

An answer contains ``dictionary``, ``skip``, ``used``, ``narrows``, ``reasons``, ``functions`` and
``detail``. If the scan reads only some ranges of some files, ``parts`` describes these files. In
``parts``, ``files`` is the number of files, and ``sizes`` contains the bytes of each range except
the last range of a file. ``skip`` contains a bit for each range. ``rows`` contains three integers
per file: the difference to the previous file number, the number of ranges, and the bytes of the
footer. For partially visible slices, the answer's ``skip`` is about the slice's rows at the
instant, and ``skip_in_part`` is about all rows that were ever written to the slice.

The answer to a scan with an unknown hash contains only ``unknown``. The driver then sends the
request again with ``parts``.

A dictionary of files contains ``files`` (the number of files), ``rows`` (four integers per file:
length, time, number of cuts, bytes of the path) and ``paths`` (in UTF-8 without separators).
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
from sieve.predicate.tree import parse
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
    """Answers the scans of a driver.

    Args:
        roots: checks which folders are allowed to contain indexes.
        pruner: answers a scan from the versions of indexes.
    """

    def __init__(self, roots: Roots, pruner: Pruner) -> None:
        self._roots = roots
        self._pruner = pruner
        self._fingerprints = Fingerprints()

    def prune(self, request: Request) -> Mapping[str, Any]:
        """Answers a scan; docs/architecture.md has an example.

        The body contains the table, registrations, fingerprints, predicate and settings.
        """
        body = request.body
        fingerprints = self._fingerprints.of(body["fingerprints"], body.get("parts", {}))
        if fingerprints is None:
            return {"unknown": True}
        return to_wire(self._pruner.prune(self._from_wire(request, fingerprints)))

    def dictionary(self, request: Request) -> Mapping[str, Any]:
        """The file dictionary to which the bits of answers refer, and which the driver caches."""
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
    """A dictionary in the form that the driver reads."""
    return {"files": files.n, "rows": _text(files.rows), "paths": _text(files.text)}


def to_wire(answer: PruneAnswer) -> Mapping[str, Any]:
    """An answer in the form that the driver reads."""
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
