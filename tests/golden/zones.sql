-- An index built in a zone whose clocks change: an hour twice, an hour never.
SET spark.sql.session.timeZone = America/Havana;

CREATE TABLE autumn USING parquet AS
SELECT id, timestamp_micros(1730548800000000 + id * 1200000000) AS ts FROM range(0, 240, 1, 40);

CREATE TABLE spring USING parquet AS
SELECT id, timestamp_micros(1709942400000000 + id * 1200000000) AS ts,
  DATE_ADD(DATE '2024-03-01', CAST(id DIV 8 AS INT)) AS day
FROM range(0, 240, 1, 40);

CREATE SIEVE INDEX ON autumn (ts) OPTIONS (error = 1);

CREATE SIEVE INDEX ON spring (ts, day) OPTIONS (error = 1);

--@ queries

SET spark.sql.session.timeZone = America/Havana;

--! files <= 16 of 40
SELECT count(*), min(id), max(id) FROM autumn WHERE CAST(ts AS DATE) = DATE '2024-11-03';

--! files <= 16 of 40
SELECT count(*), min(id), max(id) FROM autumn WHERE date_trunc('DAY', ts) = TIMESTAMP '2024-11-03 00:00:00';

--! files <= 6 of 40
SELECT count(*), min(id), max(id) FROM autumn WHERE date_trunc('HOUR', ts) = TIMESTAMP '2024-11-03 00:00:00';

--! files <= 6 of 40
SELECT count(*), min(id), max(id) FROM autumn WHERE date_trunc('HOUR', ts) = TIMESTAMP '2024-11-03 01:00:00';

--! files <= 10 of 40
SELECT count(*), min(id), max(id) FROM autumn WHERE CAST(ts AS DATE) < DATE '2024-11-03';

--! files <= 30 of 40
SELECT count(*), min(id), max(id) FROM autumn WHERE CAST(ts AS DATE) >= DATE '2024-11-04';

--! files <= 2 of 40
SELECT count(*), min(id), max(id) FROM autumn WHERE ts = TIMESTAMP '2024-11-03 12:00:00';

--! files <= 3 of 40
SELECT count(*), min(id), max(id) FROM autumn WHERE ts BETWEEN TIMESTAMP '2024-11-03 12:00:00' AND TIMESTAMP '2024-11-03 13:00:00';

SELECT count(*), min(id), max(id) FROM autumn WHERE year(ts) = 2024;

SELECT count(*), min(id), max(id) FROM autumn WHERE year(ts) = 2025;

--! files <= 16 of 40
SELECT count(*), min(id), max(id) FROM spring WHERE CAST(ts AS DATE) = DATE '2024-03-10';

--! files <= 6 of 40
SELECT count(*), min(id), max(id) FROM spring WHERE date_trunc('HOUR', ts) = TIMESTAMP '2024-03-10 01:00:00';

--! files <= 6 of 40
SELECT count(*), min(id), max(id) FROM spring WHERE date_trunc('HOUR', ts) = TIMESTAMP '2024-03-10 00:00:00';

--! files <= 6 of 40
SELECT count(*), min(id), max(id) FROM spring WHERE CAST(ts AS TIMESTAMP_NTZ) = TIMESTAMP_NTZ '2024-03-10 00:20:00';

--! files <= 3 of 40
SELECT count(*), min(id), max(id) FROM spring WHERE ts = TIMESTAMP '2024-03-10 12:00:00';

--! files <= 12 of 40
SELECT count(*), min(id), max(id) FROM spring WHERE day = TIMESTAMP '2024-03-10 00:00:00';

SELECT count(*), min(id), max(id) FROM spring WHERE day = TIMESTAMP '2024-03-10 01:00:00';

--! files <= 12 of 40
SELECT count(*), min(id), max(id) FROM spring WHERE CAST(day AS TIMESTAMP) BETWEEN TIMESTAMP '2024-03-10 00:30:00' AND TIMESTAMP '2024-03-11 12:00:00';

SELECT count(*), min(id), max(id) FROM spring WHERE day < ts AND day = DATE '2024-03-10';
