"""The command line `sieve`: starts Spark's programs and servers with Sieve configured."""
