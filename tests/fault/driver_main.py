"""The main program of a test driver; it reads SQL from standard input, one statement per line.

For each statement, the program prints one line of JSON.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from spark_session import files_read, start_session


def main(folder: str, conf: str) -> None:
    """Runs statements from standard input until the input ends."""
    spark = start_session(Path(folder), **json.loads(conf))
    _say({"jvm": int(spark._jvm.java.lang.ProcessHandle.current().pid())})
    # As in a shell, Ctrl-C cancels all jobs, and the driver continues.
    signal.signal(signal.SIGINT, lambda *_: spark.sparkContext.cancelAllJobs())
    for line in sys.stdin:
        try:
            frame = spark.sql(json.loads(line))
            rows = [list(row) for row in frame.collect()]
            _say({"rows": rows, "files": files_read(frame)})
        except Exception as error:  # noqa: BLE001 - the test decides
            _say({"error": str(error)})
    spark.stop()


def _say(reply: dict[str, object]) -> None:
    sys.stdout.write(f"@@{json.dumps(reply, default=str)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
