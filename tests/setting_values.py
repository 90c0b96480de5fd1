"""Valid and invalid values of each setting, for tests of the front end and of the driver."""

from __future__ import annotations

VALID = {
    "spark.sieve.enabled": ("true", "FALSE", " true "),
    "spark.sieve.audit.sample": ("0", "1", "1.0", "0.5", ".5", "1e-05", "2.5E-3", "0."),
    "spark.sieve.strict": ("True", "false"),
    "spark.sieve.require": ("true", "FALSE"),
    "spark.sieve.path": ("", "file:/a/b", "hdfs://host:8020/a b", "/a/b", "/a:b/c"),
    "spark.sieve.roots": ("", "/a", "file:/a,/b", "s3a://bucket/a, hdfs://host/b,"),
    "spark.sieve.prune.timeout": ("500ms", "0", "30 S", "1h", "3us"),
    "spark.sieve.join.pruning": ("auto", "OFF", " auto ", "Always"),
    "spark.sieve.top.pruning": ("auto", "OFF", " auto "),
    "spark.sieve.start.timeout": ("20s", "2min"),
    "spark.sieve.registry.ttl": ("0s", "7d"),
    "spark.sieve.refresh.auto": ("true", "false"),
    "spark.sieve.versions.retain": ("10, 7d", "1,0h", "007,24H"),
    "spark.sieve.cache.bytes": ("0", "1048576", "256MB", "1g", "3 kb"),
}
INVALID = {
    "spark.sieve.enabled": ("maybe", "yes", "1", "", "true;"),
    "spark.sieve.audit.sample": ("200", "1.5", "-0.1", "5e-1x", "half", "", "nan", "1e1"),
    "spark.sieve.strict": ("on", "t"),
    "spark.sieve.require": ("always",),
    "spark.sieve.path": ("here", "../a", "file:a", "s3a://bucket"),
    "spark.sieve.roots": ("/a,b", "file:/a;b,c", "nowhere"),
    "spark.sieve.prune.timeout": ("fast", "-1s", "1.5s", "", "5 weeks", "\u0663s"),
    "spark.sieve.join.pruning": ("never", "true", ""),
    "spark.sieve.top.pruning": ("always", "true", ""),
    "spark.sieve.start.timeout": ("soon", "12345678901s"),
    "spark.sieve.registry.ttl": ("never",),
    "spark.sieve.refresh.auto": ("yes",),
    "spark.sieve.versions.retain": ("0, 7d", "10", "10, 7", "ten, 7d"),
    "spark.sieve.cache.bytes": ("much", "-1", "1.5g", ""),
}
