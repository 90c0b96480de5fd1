"""Records the files that have passed without the index, so that tests need not run them again.

Without the index, a file's rows and the number of data files read depend only on Spark's release,
the statements and their data. For each file that has passed in the mode ``off``, ``off.json``
contains a digest of the release, the ``.sql`` and the ``.out``. While the digest is unchanged, the
file would pass again. ``pytest tests/golden --regenerate`` stores digests.

The files in ``EVERY_MODE`` still run without the index each time. These runs prove that Spark uses
its own plans if Sieve is disabled.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pyspark
from corpus import EVERY_MODE, Script

RECORD = Path(__file__).with_name("off.json")


def digest(script: Script) -> str:
    """The digest of a file's expected rows and of everything that determines Spark's answers."""
    parts = [pyspark.__version__.encode()]
    parts += [path.read_bytes() for path in (script.path, script.expected)]
    return sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()


def is_proven(script: Script) -> bool:
    """Returns whether the file in this state has passed in the mode ``off`` on this Spark."""
    return script.name not in EVERY_MODE and read_record().get(script.name) == digest(script)


def record(script: Script) -> None:
    """Records that a file has passed in the mode ``off``."""
    noted = read_record() | {script.name: digest(script)}
    RECORD.write_text(json.dumps(noted, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_record() -> dict[str, str]:
    """The digests by file name."""
    found: dict[str, str] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found
