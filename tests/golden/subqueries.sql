-- Subqueries: scalar ones that differ in their filters only, IN, EXISTS, correlated.
CREATE TABLE t USING parquet AS SELECT id AS a, id % 20 AS b, id * 2 AS c FROM range(0, 200, 1, 10);

CREATE TABLE u USING parquet AS SELECT id AS a, id % 5 AS k FROM range(0, 200, 1, 10);

CREATE SIEVE INDEX ON t (a, c) OPTIONS (error = 1);

CREATE SIEVE INDEX ON u (a) OPTIONS (error = 1);

--@ queries

SELECT (SELECT sum(b) FROM t WHERE a = 57), (SELECT sum(b) FROM t WHERE a = 158);

SELECT (SELECT sum(b) FROM t WHERE a < 10), (SELECT sum(b) FROM t WHERE a > 190), (SELECT count(*) FROM t);

SELECT (SELECT count(*) FROM t WHERE a BETWEEN 10 AND 19), (SELECT count(*) FROM t WHERE a BETWEEN 100 AND 139);

SELECT (SELECT max(b) FROM t WHERE a = 57), (SELECT min(b) FROM t WHERE a = 57);

SELECT (SELECT avg(b) FROM t WHERE a = 57), (SELECT avg(b) FROM t WHERE a = 57 OR a = 157);

SELECT CASE WHEN (SELECT count(*) FROM t WHERE a <= 40) > 10 THEN (SELECT avg(b) FROM t WHERE a <= 40) ELSE (SELECT avg(b) FROM t WHERE a > 190) END;

SELECT a, (SELECT max(k) FROM u WHERE u.a = t.a) FROM t WHERE a = 57;

SELECT a FROM t WHERE a = (SELECT max(a) FROM u WHERE a < 57);

SELECT a FROM t WHERE a > (SELECT max(a) - 2 FROM u);

SELECT a FROM t WHERE a = (SELECT a FROM u WHERE a = 57) AND a < 100;

SELECT a FROM t WHERE a = (SELECT a FROM u WHERE a = 1000);

SELECT a FROM t WHERE a IN (SELECT a FROM u WHERE a BETWEEN 57 AND 58);

SELECT a FROM t WHERE a IN (SELECT a FROM u WHERE k = 1) AND a < 12;

SELECT count(*) FROM t WHERE a NOT IN (SELECT a FROM u WHERE a < 190);

SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.a = 57);

SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = 57) AND a = 58;

SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.k = 1) AND a < 5;

SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = 1000);

SELECT a FROM t WHERE a = 57 OR a IN (SELECT a FROM u WHERE a = 158);

SELECT a FROM t WHERE a = 57 OR EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.a = 158);

SELECT a FROM (SELECT a, (SELECT count(*) FROM u WHERE u.a = 57) AS n FROM t) WHERE a = 58 AND n = 1;

SELECT (SELECT count(*) FROM t x WHERE x.a = 57 AND x.c = 114) + (SELECT count(*) FROM t y WHERE y.c = 115);

WITH q AS (SELECT (SELECT sum(b) FROM t WHERE a = 57) AS s) SELECT * FROM q x JOIN q y ON x.s = y.s;

SELECT sum(CASE WHEN a = 57 THEN b END), sum(CASE WHEN a = 158 THEN b END) FROM t WHERE a = 57 OR a = 158;

SELECT count(*) FILTER (WHERE a = 57), count(*) FILTER (WHERE a > 100) FROM t;

SELECT a, n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.a = t.a) WHERE t.a = 57;

SELECT max(a) FROM t WHERE c = (SELECT 2 * a FROM u WHERE a = 57);

SELECT (SELECT first(a) FROM (SELECT a FROM t WHERE a = 57)) = (SELECT first(a) FROM (SELECT a FROM u WHERE a = 57));
