"""What Spark alone is known to answer, so that it need not be asked again.

Without the index, the rows of a file and the number of data files read follow from Spark's release,
the statements and their data. ``off.json`` has a digest of the release, the ``.sql`` and the
``.out`` of each file whose mode ``off`` has passed: while it is the same, it would pass again.
``pytest tests/golden --regenerate`` notes digests.

The files of ``EVERY_MODE`` are run without the index each time: that Spark has plans of its own
where Sieve is switched off is a fact about Sieve.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pyspark
from corpus import EVERY_MODE, Script

RECORD = Path(__file__).with_name("off.json")


def digest(script: Script) -> str:
    """Of what the answers of Spark alone follow from, and of the answers."""
    parts = [pyspark.__version__.encode()]
    parts += [path.read_bytes() for path in (script.path, script.expected)]
    return sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()


def is_proven(script: Script) -> bool:
    """Whether the mode ``off`` has passed with the same statements and rows on the same Spark."""
    return script.name not in EVERY_MODE and read_record().get(script.name) == digest(script)


def record(script: Script) -> None:
    """Notes that the mode ``off`` has passed."""
    noted = read_record() | {script.name: digest(script)}
    RECORD.write_text(json.dumps(noted, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_record() -> dict[str, str]:
    """The digests by the names of the files."""
    found: dict[str, str] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found
