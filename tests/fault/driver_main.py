"""A driver of its own: runs the SQL that it reads, a line each, and answers in lines of JSON."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from spark_session import files_read, start_session


def main(folder: str, conf: str) -> None:
    """Serve standard input to its end."""
    spark = start_session(Path(folder), **json.loads(conf))
    _say({"jvm": int(spark._jvm.java.lang.ProcessHandle.current().pid())})
    # A shell survives Ctrl-C; so does this. The signal may come while the next line is waited for.
    signal.signal(signal.SIGINT, lambda *_: spark.sparkContext.cancelAllJobs())
    for line in sys.stdin:
        try:
            frame = spark.sql(json.loads(line))
            rows = [list(row) for row in frame.collect()]
            _say({"rows": rows, "files": files_read(frame)})
        except Exception as error:  # noqa: BLE001 - for the test to judge
            _say({"error": str(error)})
    spark.stop()


def _say(reply: dict[str, object]) -> None:
    sys.stdout.write(f"@@{json.dumps(reply, default=str)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
