"""The Spark program of ``sieve inspect``: draws a picture of an index, and prints a summary."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import sieve


def main(table: str, index: str, output: str) -> None:
    """Writes an index's picture to a file. ``table`` and ``index`` are names as in SQL."""
    spark = SparkSession.builder.appName("sieve inspect").getOrCreate()
    try:
        picture = sieve.inspect(spark, table, index)
        Path(output).write_bytes(picture.png)
    except PySparkException as error:
        # Prints only the exception's first line, the message. Further lines are a stack trace or a
        # query plan.
        raise SystemExit(f"Error: {str(error).splitlines()[0]}") from None
    except OSError as error:
        raise SystemExit(f"Error: {error}") from None
    finally:
        spark.stop()
    print(picture)  # noqa: T201 - what the command is for
    print(output)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
