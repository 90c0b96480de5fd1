"""The modes of the join benchmarks, and Spark settings that select other join algorithms."""

from __future__ import annotations

from bench.session import SWITCH

MODES = {
    "Spark alone": {SWITCH: "false"},
    "constants": {"spark.sieve.join.pruning": "off", "spark.sieve.strict": "true"},
    "Sieve": {"spark.sieve.strict": "true"},
}
# Without adaptive execution, Spark keeps its default of 200 shuffle partitions. So a cartesian
# product of two shuffled sides would have 40,000 tasks.
_STATIC = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "8"}
SETTINGS = {
    "AQE, broadcasts": {},
    "no AQE, broadcasts": _STATIC,
    "AQE, no broadcasts": {"spark.sql.autoBroadcastJoinThreshold": "-1"},
    "no AQE, no broadcasts": _STATIC | {"spark.sql.autoBroadcastJoinThreshold": "-1"},
}
