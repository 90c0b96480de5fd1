-- Dates, and functions of them that never fall.
-- Spark 3.5 asks before it writes days this old.
SET spark.sql.parquet.datetimeRebaseModeInWrite = CORRECTED;

CREATE TABLE d USING parquet AS
SELECT id, DATE_ADD(DATE '2023-01-01', CAST(id * 7 AS INT)) AS day,
  CASE id WHEN 0 THEN DATE '0001-01-01' WHEN 59 THEN DATE '9999-12-31' WHEN 30 THEN DATE '1582-10-15'
    WHEN 31 THEN DATE '1582-10-04' ELSE DATE_ADD(DATE '1970-01-01', CAST(id - 30 AS INT)) END AS old
FROM range(0, 60, 1, 6);

CREATE SIEVE INDEX ON d (day, old) OPTIONS (error = 1);

SET spark.sql.parquet.outputTimestampType = TIMESTAMP_MICROS;

-- The ends of both types in the first file and the last: a day more, or a part of a second less, wraps.
CREATE TABLE ends USING parquet AS
SELECT id, CASE id WHEN 0 THEN date_from_unix_date(-2147483648) WHEN 59 THEN date_from_unix_date(2147483647)
    ELSE DATE_ADD(DATE '2024-01-01', CAST(id AS INT)) END AS day,
  CASE id WHEN 0 THEN timestamp_micros(CAST('-9223372036854775808' AS BIGINT))
    WHEN 59 THEN timestamp_micros(CAST('9223372036854775807' AS BIGINT))
    ELSE timestamp_micros(1704067200000000 + id * 3600000000) END AS ts
FROM range(0, 60, 1, 6);

CREATE SIEVE INDEX ON ends (day, ts);

--@ queries

--! files = 1 of 6
SELECT id, day FROM d WHERE day = DATE '2023-04-16';

--! files = 0 of 6
SELECT id, day FROM d WHERE day = DATE '2024-04-16';

--! files = 1 of 6
SELECT id, day FROM d WHERE day = '2023-04-16';

--! files = 1 of 6
SELECT id FROM d WHERE day = CAST('2023-04-16' AS DATE);

--! files = 1 of 6
SELECT id FROM d WHERE day = to_date('16.04.2023', 'dd.MM.yyyy');

--! files = 1 of 6
SELECT id FROM d WHERE day = DATE '2023-04-15' + INTERVAL '1' DAY;

--! files = 1 of 6
SELECT id FROM d WHERE day = make_date(2023, 4, 16);

--! files <= 2 of 6
SELECT id, day FROM d WHERE day < DATE '2023-01-20';

--! files <= 2 of 6
SELECT id, day FROM d WHERE day BETWEEN DATE '2023-04-01' AND DATE '2023-04-30';

--! files <= 2 of 6
SELECT id, day FROM d WHERE day >= DATE '2023-04-01' AND day < add_months(DATE '2023-04-01', 1);

--! files = 2 of 6
SELECT id FROM d WHERE day IN (DATE '2023-01-01', DATE '2023-04-16', DATE '2023-04-17');

--! files = 1 of 6
SELECT id, day FROM d WHERE year(day) = 2024 AND day > DATE '2024-02-10';

--! files <= 2 of 6
SELECT count(*), min(day), max(day) FROM d WHERE year(day) = 2024;

--! files = 6 of 6
SELECT count(*) FROM d WHERE year(day) = 2023;

--! files = 0 of 6
SELECT count(*) FROM d WHERE year(day) = 2025;

--! files = 0 of 6
SELECT count(*) FROM d WHERE year(day) > 2024;

--! files <= 2 of 6
SELECT count(*) FROM d WHERE year(day) >= 2024;

--! files = 0 of 6
SELECT count(*) FROM d WHERE year(day) < 2023;

--! files <= 2 of 6
SELECT count(*) FROM d WHERE year(day) IN (2024, 2026);

--! files <= 2 of 6
SELECT count(*) FROM d WHERE year(day) BETWEEN 2024 AND 2026;

SELECT count(*) FROM d WHERE year(day) != 2023;

SELECT count(*) FROM d WHERE NOT (year(day) > 2023);

--! files <= 2 of 6
SELECT count(*) FROM d WHERE NOT (year(day) <= 2023);

--! files <= 2 of 6
SELECT count(*), min(day), max(day) FROM d WHERE trunc(day, 'MM') = DATE '2023-04-01';

--! files <= 4 of 6
SELECT count(*), min(day), max(day) FROM d WHERE trunc(day, 'QUARTER') = DATE '2023-04-01';

--! files <= 2 of 6
SELECT count(*), min(day), max(day) FROM d WHERE trunc(day, 'YEAR') = DATE '2024-01-01';

--! files = 0 of 6
SELECT count(*) FROM d WHERE trunc(day, 'MM') = DATE '2023-04-02';

SELECT count(*) FROM d WHERE trunc(day, 'nonsense') = DATE '2023-04-02';

--! files = 1 of 6
SELECT id FROM d WHERE date_add(day, 10) = DATE '2023-04-26';

--! files = 1 of 6
SELECT id FROM d WHERE date_sub(day, 10) = DATE '2023-04-06';

SELECT count(*) FROM d WHERE date_add(day, 2147483647) < DATE '1970-01-01';

--! files = 1 of 6
SELECT id FROM d WHERE CAST(day AS TIMESTAMP) = TIMESTAMP '2023-04-16 00:00:00';

SELECT id FROM d WHERE month(day) = 4;

SELECT id FROM d WHERE dayofmonth(day) = 16;

SELECT id FROM d WHERE weekofyear(day) = 15;

SELECT id FROM d WHERE quarter(day) = 2 AND day < DATE '2023-04-10';

SELECT id FROM d WHERE date_format(day, 'yyyy-MM-dd') = '2023-04-16';

SELECT id FROM d WHERE last_day(day) = DATE '2023-04-30';

SELECT id FROM d WHERE datediff(day, DATE '2023-01-01') = 105;

SELECT id FROM d WHERE CAST(day AS STRING) LIKE '2023-04%';

--! files = 1 of 6
SELECT id, old FROM d WHERE old = DATE '0001-01-01';

--! files = 1 of 6
SELECT id, old FROM d WHERE old = DATE '9999-12-31';

--! files = 1 of 6
SELECT id, old FROM d WHERE year(old) = 9999;

--! files = 1 of 6
SELECT id, old FROM d WHERE year(old) = 1;

SELECT id, old FROM d WHERE year(old) < 1970 AND year(old) > 1600;

--! files = 1 of 6
SELECT id, old FROM d WHERE old = DATE '1582-10-15';

--! files <= 2 of 6
SELECT id, old FROM d WHERE old < DATE '1900-01-01' AND old > DATE '0500-01-01';

SELECT id, old FROM d WHERE old = DATE '1970-01-02';

SELECT id, old FROM d WHERE year(old) = 10000;

SELECT id, old FROM d WHERE year(old) = 0;

SELECT id, old FROM d WHERE year(old) = -1;

SELECT count(*) FROM d WHERE year(old) < 10000;

SET spark.sql.datetime.java8API.enabled = true;

--! files = 1 of 6
SELECT id, day FROM d WHERE day = DATE '2023-04-16';

--! files <= 2 of 6
SELECT count(*) FROM d WHERE day > DATE '2024-01-15';

--! files = 1 of 6
SELECT id, old FROM d WHERE old = DATE '0001-01-01';

SET spark.sql.datetime.java8API.enabled = false;

--! files = 1 of 6
SELECT id, day FROM d WHERE day = DATE '2023-04-16';

--! files = 1 of 6
SELECT id, old FROM d WHERE old = DATE '1582-10-15';

--! files = 1 of 6
SELECT id, old FROM d WHERE old = DATE '0001-01-01';

--! files = 3 of 6
SELECT count(*), min(id), max(id) FROM ends WHERE date_add(day, 1) < DATE '2024-01-15';

--! files = 3 of 6
SELECT count(*), min(id), max(id) FROM ends WHERE day + 1 < DATE '2024-01-15';

--! files = 3 of 6
SELECT count(*), min(id), max(id) FROM ends WHERE day + INTERVAL '1' DAY < DATE '2024-01-15';

--! files = 2 of 6
SELECT count(*), min(id), max(id) FROM ends WHERE date_add(day, 1) = DATE '2024-01-26';

--! files = 2 of 6
SELECT count(*), min(id), max(id) FROM ends WHERE date_sub(day, 1) > DATE '2024-02-20';

--! files = 2 of 6
SELECT count(*), min(id), max(id) FROM ends WHERE day - 5 > DATE '2024-02-16';

--! files = 2 of 6
SELECT count(*), min(id), max(id) FROM ends WHERE trunc(day, 'YEAR') > DATE '2024-02-01';

--! files = 2 of 6
SELECT count(*), min(id), max(id) FROM ends WHERE trunc(day, 'MM') > DATE '2024-02-01';

--! files = 2 of 6
SELECT count(*), min(id), max(id) FROM ends WHERE trunc(day, 'WEEK') > DATE '2024-02-20';

--! files = 1 of 6
SELECT count(*), min(id), max(id) FROM ends WHERE year(day) > 100000;

--! files = 2 of 6
SELECT count(*), min(id), max(id) FROM ends WHERE date_trunc('SECOND', ts) > TIMESTAMP '2024-01-03 05:30:00';

--! files = 2 of 6
SELECT count(*), min(id), max(id) FROM ends WHERE date_trunc('MILLISECOND', ts) > TIMESTAMP '2024-01-03 05:30:00';
