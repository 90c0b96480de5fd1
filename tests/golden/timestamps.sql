-- Timestamps of both kinds: bounds of days, months and years are those of the session's zone.
SET spark.sql.session.timeZone = UTC;

-- Spark 3.5 asks before it writes times this old.
SET spark.sql.parquet.int96RebaseModeInWrite = CORRECTED;

SET spark.sql.parquet.datetimeRebaseModeInWrite = CORRECTED;

-- Every four hours from 2024-03-28 on, over the night when clocks go forward in Berlin.
CREATE TABLE spring USING parquet AS
SELECT id, timestamp_micros(1711584000000000 + id * 14400000000) AS ts,
  CAST(timestamp_micros(1711584000000000 + id * 14400000000) AS TIMESTAMP_NTZ) AS ntz
FROM range(0, 60, 1, 10);

-- Every twenty minutes from 2024-10-26 12:00 on, over the night when clocks go back.
CREATE TABLE autumn USING parquet AS
SELECT id, timestamp_micros(1729944000000000 + id * 1200000000) AS ts FROM range(0, 120, 1, 20);

-- One a fortnight from 2022 to 2024, and the far ends.
CREATE TABLE years USING parquet AS
SELECT id, CASE id WHEN 0 THEN TIMESTAMP '0001-01-02 00:00:00' WHEN 79 THEN TIMESTAMP '9999-12-30 00:00:00'
  ELSE timestamp_micros(1640995200000000 + id * 1209600000000) END AS ts,
  timestamp_micros(1640995200000001 + id) AS fine
FROM range(0, 80, 1, 8);

CREATE SIEVE INDEX ON spring (ts, ntz) OPTIONS (error = 1);

CREATE SIEVE INDEX ON autumn (ts) OPTIONS (error = 1);

CREATE SIEVE INDEX ON years (ts, fine) OPTIONS (error = 1);

--@ queries

SET spark.sql.session.timeZone = UTC;

--! files = 1 of 10
SELECT id, ts FROM spring WHERE ts = TIMESTAMP '2024-03-31 00:00:00';

--! files = 0 of 10
SELECT id, ts FROM spring WHERE ts = TIMESTAMP '2024-03-31 00:00:00.000001';

--! files = 1 of 10
SELECT id, ts FROM spring WHERE ts = TIMESTAMP '2024-03-31 02:00:00+02:00';

--! files = 1 of 10
SELECT id, ts FROM spring WHERE ts = '2024-03-31 00:00:00';

--! files <= 2 of 10
SELECT id FROM spring WHERE ts < TIMESTAMP '2024-03-28 10:00:00';

--! files <= 3 of 10
SELECT id, ts FROM spring WHERE ts BETWEEN TIMESTAMP '2024-03-31 00:00:00' AND TIMESTAMP '2024-03-31 23:59:59';

--! files = 1 of 10
SELECT id, ntz FROM spring WHERE ntz = TIMESTAMP_NTZ '2024-03-31 00:00:00';

--! files <= 2 of 10
SELECT id, ntz FROM spring WHERE ntz > TIMESTAMP_NTZ '2024-04-06 10:00:00';

--! files <= 3 of 10
SELECT id, ts FROM spring WHERE CAST(ts AS DATE) = DATE '2024-03-31';

--! files <= 3 of 10
SELECT id, ntz FROM spring WHERE CAST(ntz AS DATE) = DATE '2024-03-31';

--! files <= 3 of 10
SELECT id, ts FROM spring WHERE to_date(ts) = DATE '2024-03-31';

--! files <= 3 of 10
SELECT id, ts FROM spring WHERE date_trunc('DAY', ts) = TIMESTAMP '2024-03-31 00:00:00';

--! files <= 6 of 10
SELECT count(*), min(ts), max(ts) FROM spring WHERE date_trunc('MONTH', ts) = TIMESTAMP '2024-04-01 00:00:00';

--! files <= 2 of 10
SELECT count(*), min(ts), max(ts) FROM spring WHERE date_trunc('HOUR', ts) = TIMESTAMP '2024-03-31 04:00:00';

--! files = 0 of 10
SELECT count(*) FROM spring WHERE date_trunc('DAY', ts) = TIMESTAMP '2024-03-31 00:00:01';

--! files <= 2 of 10
SELECT count(*) FROM spring WHERE CAST(ts AS DATE) > DATE '2024-04-05' AND CAST(ts AS DATE) <= DATE '2024-04-06';

--! files <= 3 of 10
SELECT count(*) FROM spring WHERE ts >= DATE '2024-03-31' AND ts < DATE '2024-04-01';

SELECT count(*) FROM spring WHERE hour(ts) = 4;

SELECT count(*) FROM spring WHERE date_format(ts, 'yyyy-MM-dd') = '2024-03-31';

SELECT id FROM spring WHERE unix_timestamp(ts) = 1711843200;

SELECT id FROM spring WHERE CAST(ts AS LONG) = 1711843200;

--! files = 1 of 10
SELECT id FROM spring WHERE ts = timestamp_seconds(1711843200);

--! files = 1 of 8
SELECT id, ts FROM years WHERE year(ts) = 9999;

--! files = 1 of 8
SELECT id, ts FROM years WHERE year(ts) = 1;

--! files <= 5 of 8
SELECT count(*), min(ts), max(ts) FROM years WHERE year(ts) = 2023;

--! files <= 4 of 8
SELECT count(*), min(ts), max(ts) FROM years WHERE year(ts) = 2022;

--! files = 0 of 8
SELECT count(*) FROM years WHERE year(ts) = 2030;

--! files <= 3 of 8
SELECT count(*), min(ts), max(ts) FROM years WHERE date_trunc('MONTH', ts) = TIMESTAMP '2023-06-01 00:00:00';

--! files <= 4 of 8
SELECT count(*), min(ts), max(ts) FROM years WHERE date_trunc('QUARTER', ts) = TIMESTAMP '2023-04-01 00:00:00';

--! files <= 2 of 8
SELECT count(*), min(ts), max(ts) FROM years WHERE date_trunc('WEEK', ts) = TIMESTAMP '2023-06-05 00:00:00';

--! files <= 5 of 8
SELECT count(*), min(ts), max(ts) FROM years WHERE date_trunc('YEAR', ts) = TIMESTAMP '2023-01-01 00:00:00';

SELECT count(*) FROM years WHERE date_trunc('CENTURY', ts) = TIMESTAMP '2023-01-01 00:00:00';

SELECT count(*) FROM years WHERE month(ts) = 6;

--! files = 1 of 8
SELECT id, fine FROM years WHERE fine = TIMESTAMP '2022-01-01 00:00:00.000042';

--! files <= 2 of 8
SELECT count(*) FROM years WHERE fine < TIMESTAMP '2022-01-01 00:00:00.000006';

--! files <= 3 of 20
SELECT count(*), min(id), max(id) FROM autumn WHERE date_trunc('HOUR', ts) = TIMESTAMP '2024-10-27 01:00:00';

SET spark.sql.session.timeZone = Europe/Berlin;

-- The index was built for another zone; reading Parquet timestamps does not depend on it, but that
-- is for the fingerprint to know: rows first.
SELECT id, CAST(ts AS STRING) FROM spring WHERE ts = TIMESTAMP '2024-03-31 05:00:00';

SELECT count(*), min(id), max(id) FROM spring WHERE CAST(ts AS DATE) = DATE '2024-03-31';

SELECT count(*), min(id), max(id) FROM autumn WHERE CAST(ts AS DATE) = DATE '2024-10-27';

SELECT count(*), min(id), max(id) FROM autumn WHERE date_trunc('HOUR', ts) = TIMESTAMP '2024-10-27 02:00:00';

SELECT count(*) FROM years WHERE year(ts) = 2023;
