"""CSV files as other programs write them: wrong numbers of fields, unusual quotes or encodings."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from foreign_rows import Rows, plain_text

_STRAYS = ('"', '""', '"a"b', "\\", "'", ";", ",", "#", " x ", "NULL", "-", "1e400", "01", "\t")


def draw_options(rng: random.Random) -> dict[str, str]:
    """Draws random options of the CSV reader."""
    options = {}
    if rng.random() < 0.6:
        options["header"] = "true"
        if rng.random() < 0.4:
            options["enforceSchema"] = "false"
    choices = {
        "sep": [";", "\t", "|", "::"],
        "nullValue": ["NULL", "-", "0"],
        "emptyValue": ["", "EMPTY"],
        "nanValue": ["nan", "NaN"],
        "quote": ["'", '"', ""],
        "escape": ['"', "\\"],
        "comment": ["#"],
        "ignoreLeadingWhiteSpace": ["true"],
        "ignoreTrailingWhiteSpace": ["true"],
        "lineSep": ["\n"],
        "multiLine": ["true"],
        "timestampFormat": ["yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX"],
        "dateFormat": ["yyyy-MM-dd", "dd/MM/yyyy"],
    }
    for name in rng.sample(sorted(choices), k=rng.choice([0, 1, 2, 3])):
        options[name] = rng.choice(choices[name])
    if rng.random() < 0.15:
        options["encoding"] = rng.choice(["ISO-8859-1", "UTF-8"])
    how = rng.random()
    if how < 0.25:
        options["mode"] = rng.choice(["DROPMALFORMED", "DROPMALFORMED", "FAILFAST"])
    elif how < 0.5:
        options["columnNameOfCorruptRecord"] = "_bad"
    return options


def write(rng: random.Random, rows: Rows, path: Path, options: Mapping[str, str]) -> None:
    """Writes one CSV file; some files contain damaged records or a different header."""
    damage = rng.choice([0.0, 0.2, 0.5])
    sep = options.get("sep", ",")
    lines = []
    if options.get("header") == "true":
        header = [name.strip("`") for name in rows.names]
        if rng.random() < damage:
            rng.choice([rng.shuffle, list.pop, list.reverse])(header)
        lines.append(sep.join(header))
    encoding = options.get("encoding", "utf-8")
    encoded = [line.encode(encoding, "replace") for line in lines]
    for k in range(len(rows)):
        fields = [_field(rows, name, k, options) for name in rows.names]
        if rng.random() < damage:
            rows.damaged.add(k)
            fields = _damaged_fields(rng, fields)
        line = sep.join(fields).encode(encoding, "replace")
        if rng.random() < damage / 2:
            rows.damaged.add(k)
            line = _damaged_bytes(rng, line)
        encoded.append(line)
        if rng.random() < damage / 4:
            stray = rng.choice(["", "   ", "#", "# note", sep, sep * 30])
            encoded.append(stray.encode(encoding))
    ending = b"\n" if "lineSep" in options else rng.choice([b"\n", b"\n", b"\r\n", b"\r"])
    path.write_bytes(ending.join(encoded) + (ending if rng.random() < 0.7 else b""))


def _field(rows: Rows, name: str, k: int, options: Mapping[str, str]) -> str:
    sep, quote = options.get("sep", ","), options.get("quote", '"')
    value = rows.values[name][k]
    if value is None:
        return options.get("nullValue", "")
    text = plain_text(rows.family(name), value)
    if quote and (any(c in text for c in (quote, "\n", "\r", "#", " ")) or sep in text or not text):
        escape = options.get("escape", "\\")
        return quote + text.replace(quote, escape + quote) + quote
    return text


def _damaged_fields(rng: random.Random, fields: list[str]) -> list[str]:
    place = rng.randrange(len(fields))
    how = rng.random()
    if how < 0.25:
        return fields[:place]
    if how < 0.45:
        return [*fields, *rng.choices(_STRAYS, k=rng.choice([1, 3]))]
    if how < 0.6:
        return fields[:place] + fields[place + 1 :]
    return [
        *fields[:place],
        rng.choice(_STRAYS) + rng.choice(["", fields[place]]),
        *fields[place + 1 :],
    ]


def _damaged_bytes(rng: random.Random, line: bytes) -> bytes:
    place = rng.randrange(len(line) + 1)
    stray = rng.choice([b"\xe9", b"\xff", b"\0", b'"', b"\n", b"\r", b"\\", b"\xef\xbb\xbf"])
    return line[:place] + (stray + line[place:] if rng.random() < 0.8 else b"")
