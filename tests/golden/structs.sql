-- Fields of structs, in formats that read them by themselves and in one that does not.
CREATE TABLE p USING parquet AS
SELECT id, CASE WHEN id BETWEEN 20 AND 24 THEN NULL ELSE named_struct('a', id, 'b', CASE WHEN id = 35 THEN NULL ELSE CONCAT('v', LPAD(id, 3, '0')) END,
  'in', named_struct('x', CAST(id AS INT), 'day', DATE_ADD(DATE '2024-01-01', CAST(id AS INT)))) END AS s, array(id) AS arr, map('k', id) AS m
FROM range(0, 60, 1, 6);

CREATE TABLE o USING orc AS SELECT /*+ REPARTITION_BY_RANGE(6, id) */ * FROM p;

CREATE TABLE j USING json AS SELECT /*+ REPARTITION_BY_RANGE(6, id) */ id, s FROM p;

CREATE SIEVE INDEX ON p (s.a, s.b, s.in.x, s.in.day) OPTIONS (error = 1);

CREATE SIEVE INDEX ON o (s.a) OPTIONS (error = 1);

CREATE SIEVE INDEX ON j (s.a) OPTIONS (error = 1);

--@ queries

--! files <= 2 of 6
SELECT id, s.a FROM p WHERE s.a = 33;

--! files <= 2 of 6
SELECT id FROM p WHERE s.a = 33;

--! files <= 2 of 6
SELECT s.b FROM p WHERE s.a = 33;

--! files <= 2 of 6
SELECT s.in.x FROM p WHERE p.s.a = 33;

--! files <= 2 of 6
SELECT s.* FROM p WHERE s.in.x = 33;

--! files <= 2 of 6
SELECT id FROM p WHERE s.in.x = 33 AND s.b > 'v0';

--! files <= 2 of 6
SELECT id, s.in.day FROM p WHERE s.in.day = DATE '2024-02-03';

--! files <= 2 of 6
SELECT count(*) FROM p WHERE year(s.in.day) = 2024 AND s.in.day < DATE '2024-01-04';

--! files = 1 of 6
SELECT id FROM p WHERE s.b = 'v033';

--! files <= 2 of 6
SELECT id FROM p WHERE s.b LIKE 'v03%' AND s.a > 36;

--! files <= 3 of 6
SELECT id FROM p WHERE s.a = 3 OR s.in.x = 33;

--! files = 1 of 6
SELECT id FROM p WHERE s.a IS NULL;

--! files = 2 of 6
SELECT id FROM p WHERE s.b IS NULL;

SELECT id FROM p WHERE s IS NULL;

SELECT count(*) FROM p WHERE s IS NOT NULL;

SELECT count(*) FROM p WHERE s.b IS NOT NULL;

SELECT id FROM p WHERE s = named_struct('a', 33L, 'b', 'v033', 'in', named_struct('x', 33, 'day', DATE '2024-02-03'));

SELECT id FROM p WHERE s.in = named_struct('x', 33, 'day', DATE '2024-02-03');

SELECT id FROM p WHERE arr[0] = 33;

SELECT id FROM p WHERE m['k'] = 33;

SELECT id FROM p WHERE s.a + 0 = 33;

--! files <= 3 of 6
SELECT x.s.a FROM p AS x WHERE x.s.a BETWEEN 33 AND 34;

--! files <= 3 of 6
SELECT count(*) FROM p WHERE NOT (s.a > 22);

SELECT count(*) FROM p WHERE NOT (s.a <=> 33);

--! files <= 2 of 6
SELECT z FROM (SELECT s.a AS z FROM p) WHERE z = 33;

--! files <= 2 of 6
SELECT t.a FROM (SELECT s AS t FROM p) WHERE t.a = 33;

--! files <= 2 of 6
SELECT count(*) FROM p LATERAL VIEW explode(arr) e AS v WHERE s.a = 33;

--! files <= 2 of 6
SELECT s.in.x, count(*) FROM p WHERE s.in.x < 3 GROUP BY s.in.x;

--! files <= 2 of 6
SELECT id FROM o WHERE s.a = 33;

--! files <= 2 of 6
SELECT s.b FROM o WHERE s.a < 3;

--! files <= 2 of 6
SELECT s.in.x FROM o WHERE s.a = 33;

--! files <= 2 of 6
SELECT s.* FROM o WHERE s.a = 33;

--! files <= 2 of 6
SELECT s.in.day, m['k'] FROM o WHERE s.a = 33;

--! files <= 2 of 6
SELECT arr[0], s.in FROM o WHERE s.a = 33;

-- Spark's own answer is 0, also without an index: its reader of ORC skips stripes by statistics of s.a,
-- which do not count the NULLs of rows whose struct is NULL. spark.sql.orc.filterPushdown = false gives 5.
--! files <= 2 of 6
SELECT count(*) FROM o WHERE s.a IS NULL;

--! files <= 2 of 6
SELECT id FROM j WHERE s.a = 33;

--! files <= 2 of 6
SELECT s.b FROM j WHERE s.a = 33;

SELECT count(*) FROM j WHERE s.a IS NULL;

SELECT count(*) FROM j WHERE s.a > 57 OR s.a IS NULL;

--! files <= 2 of 6
SELECT s.in.x FROM j WHERE s.a > 57;
