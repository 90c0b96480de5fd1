"""JSON files as other programs write them: broken records, unusual types or encodings."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foreign_rows import Rows, plain_text

_BROKEN = {
    "s": [
        '{]"b":1}',
        '{"a":tru',
        '{"b":1 "b":2}',
        "{,}",
        '{"b":01}',
        '{"b":"\\q"}',
        '{"a":1',
        "[1]",
    ],
    "l": ["[1 2]", "[1,,2]", "[tru]", "[01]", "[1,", "[1]]", '{"k":1}', '["\\q"]'],
    "m": ['{"k":01}', '{"k":tru', "{,}", '{"k" 1}', '{"k":1,}', "{]}", '{"k":"\\q"}', "[]"],
}
_BARE = (
    "null",
    "7",
    '"text"',
    "[]",
    "[{}]",
    "{}",
    "",
    "  ",
    "<row/>",
    "\ufeff",
    "{",
    "}",
    "// note",
)
_OTHER_TYPES = (
    "{}",
    "[]",
    '"7"',
    '"x"',
    "7",
    "1e400",
    "99999999999999999999",
    "true",
    "null",
    "01",
)
_ALLOWANCES = (
    "allowSingleQuotes allowComments allowUnquotedFieldNames allowNumericLeadingZeros "
    "allowBackslashEscapingAnyCharacter allowUnquotedControlChars allowNonNumericNumbers "
    "primitivesAsString prefersDecimal"
).split()


def draw_options(rng: random.Random) -> dict[str, str]:
    """Draws random options of the JSON reader."""
    options = {name: rng.choice(["true", "false"]) for name in rng.sample(_ALLOWANCES, k=2)}
    how = rng.random()
    if how < 0.2:
        options["mode"] = rng.choice(["DROPMALFORMED", "FAILFAST"])
    elif how < 0.5:
        options["columnNameOfCorruptRecord"] = "_bad"
    if rng.random() < 0.1:
        options["multiLine"] = "true"
    if rng.random() < 0.1:
        options["encoding"] = rng.choice(["UTF-16LE", "ISO-8859-1", "UTF-8"])
        options["lineSep"] = "\n"
    return options


def write(rng: random.Random, rows: Rows, path: Path, options: Mapping[str, str]) -> None:
    """Writes one JSON file; some files contain damaged records."""
    damage = rng.choice([0.0, 0.2, 0.5])
    encoding = options.get("encoding", "utf-8")
    lines = []
    for k in range(len(rows)):
        record = _record(rng, rows, k, damage)
        line = record.encode(encoding, "replace")
        if rng.random() < damage:
            rows.damaged.add(k)
            line = _damaged_bytes(rng, line)
        lines.append(line)
        if rng.random() < damage / 4:
            lines.append(rng.choice(_BARE).encode(encoding, "replace"))
    ending = "\n".encode(encoding)
    body = ending.join(lines)
    if options.get("multiLine") == "true" and encoding == "utf-8" and rng.random() < 0.7:
        body = b"[" + b",\n".join(lines) + b"]"
    path.write_bytes(body + (ending if rng.random() < 0.7 else b""))


def _record(rng: random.Random, rows: Rows, k: int, damage: float) -> str:
    fields = [(name.strip("`"), _value(rows, name, k)) for name in rows.names]
    fields = [(n, v) for n, v in fields if v != "null" or rng.random() < 0.3]
    if rng.random() < 0.1:
        rng.shuffle(fields)
    if fields and rng.random() < damage:
        rows.damaged.add(k)
        nested = [n for n, (name, _) in enumerate(fields) if name in _BROKEN]
        place = rng.choice(nested if nested and rng.random() < 0.5 else range(len(fields)))
        name, value = fields[place]
        fields[place] = _damaged_field(rng, name, value)
        if rng.random() < 0.2:
            fields.append((name, value))
    return "{" + ",".join(f"{json.dumps(n)}:{v}" for n, v in fields) + "}"


def _value(rows: Rows, name: str, k: int) -> str:
    value = rows.values[name][k]
    if value is None:
        return "null"
    if name == "s":
        return '{"a":' + _scalar(rows.family("s.a"), value["a"]) + f',"b":{value["b"]}' + "}"
    return json.dumps(value) if name in _BROKEN else _scalar(rows.family(name), value)


def _scalar(family: str, value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, int) and family not in ("date", "timestamp", "timestamp_ntz"):
        return plain_text(family, value)
    if isinstance(value, str):
        # The writer uses no \\u escapes, so later damage can hit the bytes of texts.
        return json.dumps(value, ensure_ascii=False)
    text = plain_text(family, value)
    numeric = family in ("float", "double", "decimal") and text[-1].isdigit()
    return text if numeric else json.dumps(text)


def _damaged_field(rng: random.Random, name: str, value: str) -> tuple[str, str]:
    how = rng.random()
    if how < 0.6 and name in _BROKEN:
        return name, rng.choice(_BROKEN[name])
    if how < 0.6:
        return name, rng.choice(_OTHER_TYPES)
    if how < 0.7:
        return name, value.replace('"', "'")
    if how < 0.8:
        return name, rng.choice(["/* c */ " + value, value + " // c\n", "+" + value, "0" + value])
    if how < 0.9:
        return rng.choice([name.upper(), name + " ", "other"]), value
    return name, value[: rng.randrange(len(value) + 1)]


def _damaged_bytes(rng: random.Random, line: bytes) -> bytes:
    place = rng.randrange(len(line) + 1)
    how = rng.random()
    if how < 0.45:
        # Next to the first or last character of a text, a Latin-1 letter makes the UTF-8 invalid.
        ends = [at for at in range(1, len(line)) if line[at : at + 1] == b'"']
        place = rng.choice(ends) + rng.choice([0, 0, 1]) if ends else place
        return line[:place] + rng.choice([b"\xe9", b"\xe9", b"\xff", b"\xc3"]) + line[place:]
    if how < 0.65:
        return line[:place]
    if how < 0.8:
        return line[:place] + rng.choice([b"\0", b"\n", b"\r", b'"', b"\\", b"\x01"]) + line[place:]
    return line + line if how < 0.9 else line[place:]
