"""The modes in which joins are measured, and the settings of Spark that change how it joins."""

from __future__ import annotations

from bench.session import SWITCH

MODES = {
    "Spark alone": {SWITCH: "false"},
    "constants": {"spark.sieve.join.pruning": "off", "spark.sieve.strict": "true"},
    "Sieve": {"spark.sieve.strict": "true"},
}
SETTINGS = {
    "AQE, broadcasts": {},
    "no AQE, broadcasts": {"spark.sql.adaptive.enabled": "false"},
    "AQE, no broadcasts": {"spark.sql.autoBroadcastJoinThreshold": "-1"},
    "no AQE, no broadcasts": {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    },
}
