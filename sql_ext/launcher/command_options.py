"""Options of several commands of ``sieve``, and the console to which they print messages."""

from __future__ import annotations

from typing import Final

import click
from rich.console import Console

# The commands also accept unknown options. The launcher passes unknown options to spark-submit,
# unchanged and in the same order.
PASS_ON: Final = {"ignore_unknown_options": True, "help_option_names": ["--help"]}
UP_TO_PROGRAM: Final = {**PASS_ON, "allow_interspersed_args": False}

spark_arguments = click.argument("args", nargs=-1, type=click.UNPROCESSED)
with_hudi = click.option(
    "--hudi", is_flag=True, help="With Hudi: its bundle, catalog, extension and serializer."
)
with_delta = click.option(
    "--delta", is_flag=True, help="With Delta: its package, catalog and extension."
)
with_iceberg = click.option(
    "--iceberg", is_flag=True, help="With Iceberg: its package, catalog and extension."
)
notes: Final = Console(stderr=True, highlight=False)
