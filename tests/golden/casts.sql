-- Columns against literals of other types, as Spark's coercion compares them; ANSI on and off.
CREATE TABLE c USING parquet AS
SELECT CAST(id AS TINYINT) AS ti, CAST(id AS SMALLINT) AS si, CAST(id AS INT) AS i, id AS b,
  CAST(id AS FLOAT) / 4 AS f, CAST(id AS DOUBLE) / 4 AS d, CAST(id AS DECIMAL(10,2)) / 4 AS q,
  CAST(CAST(id AS DECIMAL(30,0)) * 100000000000000000000 AS DECIMAL(30,0)) AS big,
  CAST(id AS STRING) AS s, DATE_ADD(DATE '2024-01-01', CAST(id AS INT)) AS day
FROM range(0, 100, 1, 10);

CREATE SIEVE INDEX ON c (ti, i, b, f, d, q, big, s, day) OPTIONS (error = 1);

--@ queries

SET spark.sql.ansi.enabled = true;

--! files = 1 of 10
SELECT i FROM c WHERE i = 57L;

--! files = 1 of 10
SELECT i FROM c WHERE i = 57S;

--! files = 1 of 10
SELECT i FROM c WHERE i = 57.0;

--! files = 0 of 0
SELECT i FROM c WHERE i = 57.5;

--! files <= 2 of 10
SELECT i FROM c WHERE i > 96.5;

--! files <= 2 of 10
SELECT i FROM c WHERE i < 3.5;

--! files = 1 of 10
SELECT i FROM c WHERE i = 57.0D;

--! files = 1 of 10
SELECT i FROM c WHERE i = CAST(57 AS FLOAT);

--! files = 1 of 10
SELECT i FROM c WHERE i = '57';

--! files = 1 of 10
SELECT i FROM c WHERE i = ' 57 ';

--! files = 0 of 0
SELECT i FROM c WHERE i = 3000000000;

--! files = 10 of 10
SELECT count(*) FROM c WHERE i < 3000000000;

--! files = 0 of 0
SELECT count(*) FROM c WHERE ti = 1000;

--! files = 10 of 10
SELECT count(*) FROM c WHERE ti < 1000;

--! files = 1 of 10
SELECT ti FROM c WHERE ti = 57.0D;

--! files <= 2 of 10
SELECT ti FROM c WHERE ti >= 98.5;

--! files = 1 of 10
SELECT b FROM c WHERE b = 57.00;

--! files = 0 of 0
SELECT b FROM c WHERE b = 57.01;

--! files = 1 of 10
SELECT b FROM c WHERE b = 57.0D;

--! files <= 2 of 10
SELECT b FROM c WHERE b BETWEEN 1.5D AND 3.5D;

--! files = 2 of 10
SELECT b FROM c WHERE b IN (7.0, 57.0);

--! files = 2 of 10
SELECT i FROM c WHERE i IN (7L, 57L, 5000000000L);

--! files <= 2 of 10
SELECT f FROM c WHERE f = 14.25;

--! files <= 2 of 10
SELECT f FROM c WHERE f = 14.25D;

--! files <= 2 of 10
SELECT f FROM c WHERE f = CAST(14.25 AS FLOAT);

--! files = 0 of 10
SELECT f FROM c WHERE f = 0.1D;

--! files <= 2 of 10
SELECT f FROM c WHERE f > 24;

--! files <= 2 of 10
SELECT d FROM c WHERE d = 14.25;

--! files <= 2 of 10
SELECT d FROM c WHERE d = 14;

--! files <= 2 of 10
SELECT d FROM c WHERE d = CAST(14.25 AS FLOAT);

--! files = 1 of 10
SELECT q FROM c WHERE q = 14.25;

--! files = 1 of 10
SELECT q FROM c WHERE q = 14;

--! files = 1 of 10
SELECT q FROM c WHERE q = 14.2500;

--! files = 0 of 10
SELECT q FROM c WHERE q = 14.2501;

--! files <= 2 of 10
SELECT q FROM c WHERE q < 0.6;

--! files = 1 of 10
SELECT q FROM c WHERE q = 14.25D;

--! files <= 2 of 10
SELECT q FROM c WHERE q > 24.333333;

--! files = 1 of 10
SELECT q FROM c WHERE q = '14.25';

--! files <= 2 of 10
SELECT big FROM c WHERE big = 5700000000000000000000;

--! files <= 2 of 10
SELECT count(*) FROM c WHERE big > 9600000000000000000000;

--! files = 0 of 10
SELECT count(*) FROM c WHERE big = -1;

--! files = 1 of 10
SELECT s FROM c WHERE s = '57';

SELECT s FROM c WHERE s = 57;

SELECT s FROM c WHERE s = 57.0;

SELECT count(*) FROM c WHERE s < 10;

--! files = 1 of 10
SELECT day FROM c WHERE day = '2024-02-27';

--! files = 1 of 10
SELECT day FROM c WHERE day = TIMESTAMP '2024-02-27 00:00:00';

--! files = 0 of 0
SELECT day FROM c WHERE day = TIMESTAMP '2024-02-27 12:00:00';

--! files <= 2 of 10
SELECT day FROM c WHERE day > TIMESTAMP '2024-04-07 12:00:00';

--! files <= 2 of 10
SELECT count(*) FROM c WHERE day < TIMESTAMP_NTZ '2024-01-04 00:00:01';

--! files <= 2 of 10
SELECT day FROM c WHERE CAST(i AS BIGINT) = 57 AND CAST(i AS DECIMAL(20,3)) = 57;

--! files <= 2 of 10
SELECT i FROM c WHERE CAST(i AS DOUBLE) >= 97.5;

SELECT i FROM c WHERE CAST(i AS STRING) = '57';

SELECT i FROM c WHERE CAST(q AS INT) = 14;

SELECT i FROM c WHERE CAST(i AS BOOLEAN) = false;

SELECT count(*) FROM c WHERE CAST(d AS FLOAT) = 14.25;

SET spark.sql.ansi.enabled = false;

--! files = 1 of 10
SELECT i FROM c WHERE i = '57';

--! files = 0 of 0
SELECT i FROM c WHERE i = 'x';

SELECT i FROM c WHERE i = '57.5';

--! files = 1 of 10
SELECT q FROM c WHERE q = '14.25';

SELECT s FROM c WHERE s = 57;

--! files = 1 of 10
SELECT day FROM c WHERE day = '2024-02-27';

SELECT day FROM c WHERE day = 'never';

--! files = 0 of 0
SELECT i FROM c WHERE i = 3000000000;

--! files = 10 of 10
SELECT count(*) FROM c WHERE ti < 1000;

SELECT count(*) FROM c WHERE CAST(b AS TINYINT) = 57;

SELECT count(*) FROM c WHERE CAST(b * 256 AS TINYINT) = 0;

SELECT count(*) FROM c WHERE TRY_CAST(s AS INT) = 57;

RESET spark.sql.ansi.enabled;
