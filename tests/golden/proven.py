"""Records the corpus files that have passed without the index; later test runs omit these files.

Without the index, rows and numbers of files read depend only on Spark's release, the statements and
the data. ``off.json`` lists the files that have passed in the mode ``off``. Each entry is a digest
of Spark's release, the ``.sql`` file and the ``.out`` file. A file that matches its stored digest
would pass again. ``pytest tests/golden --regenerate`` stores the digests.

The files in ``EVERY_MODE`` run without the index each time, even with a stored digest. The runs of
``EVERY_MODE`` show that Spark uses its own plans if Sieve is disabled.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pyspark
from corpus import EVERY_MODE, Script

RECORD = Path(__file__).with_name("off.json")


def digest(script: Script) -> str:
    """The digest of a file's expected rows and of all inputs that determine Spark's answers."""
    parts = [pyspark.__version__.encode()]
    parts += [path.read_bytes() for path in (script.path, script.expected)]
    return sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()


def is_proven(script: Script) -> bool:
    """Returns whether the present file has passed in the mode ``off`` on this Spark."""
    return script.name not in EVERY_MODE and read_record().get(script.name) == digest(script)


def record(script: Script) -> None:
    """Records that a file has passed in the mode ``off``."""
    noted = read_record() | {script.name: digest(script)}
    RECORD.write_text(json.dumps(noted, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_record() -> dict[str, str]:
    """The stored digests by file name."""
    found: dict[str, str] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found
