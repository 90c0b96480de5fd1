-- Trees of AND, OR and NOT over several indexes, and parts that no index knows.
CREATE TABLE t USING parquet AS
SELECT id AS a, 199 - id AS b, id % 20 AS c, CASE WHEN id % 9 = 0 THEN NULL ELSE id DIV 10 END AS d
FROM range(0, 200, 1, 20);

CREATE SIEVE INDEX ON t (a, b, c, d) OPTIONS (error = 1);

--@ queries

--! files = 1 of 20
SELECT a FROM t WHERE a = 57 AND b = 142;

--! files = 0 of 20
SELECT a FROM t WHERE a = 57 AND b = 57;

--! files = 2 of 20
SELECT a FROM t WHERE a = 57 OR b = 57;

--! files = 1 of 20
SELECT a FROM t WHERE (a = 57 OR a = 157) AND b > 100;

--! files = 1 of 20
SELECT a FROM t WHERE (a = 57 OR a = 157) AND (b = 142 OR b = 3);

--! files <= 3 of 20
SELECT a FROM t WHERE a < 3 OR b < 3 OR a = 100;

--! files = 1 of 20
SELECT a FROM t WHERE NOT (a != 57);

--! files = 1 of 20
SELECT a FROM t WHERE NOT (NOT (a = 57));

--! files = 1 of 20
SELECT a FROM t WHERE NOT (a <> 57 OR b <> 142);

--! files <= 2 of 20
SELECT a FROM t WHERE NOT (a > 3);

--! files <= 2 of 20
SELECT a FROM t WHERE NOT (a > 3 OR b < 190);

--! files <= 3 of 20
SELECT count(*) FROM t WHERE NOT (a > 3 AND b > 3);

--! files <= 3 of 20
SELECT count(*) FROM t WHERE NOT (a >= 4 AND NOT (a >= 196));

SELECT count(*) FROM t WHERE NOT (a BETWEEN 3 AND 196);

--! files = 1 of 20
SELECT a FROM t WHERE a = 57 AND (c = 17 OR a % 3 = 1);

--! files <= 11 of 20
SELECT a FROM t WHERE a = 57 OR (c = 3 AND a % 7 = 1);

--! files <= 2 of 20
SELECT a FROM t WHERE (a = 57 AND a % 2 = 1) OR (b = 57 AND b % 2 = 1);

--! files = 20 of 20
SELECT a FROM t WHERE (a = 57 OR a % 100 = 99);

--! files = 0 of 0
SELECT a FROM t WHERE a = 57 AND false;

--! files = 1 of 20
SELECT a FROM t WHERE a = 57 AND true;

--! files = 1 of 20
SELECT a FROM t WHERE a = 57 OR false;

--! files = 20 of 20
SELECT count(*) FROM t WHERE a = 57 OR true;

--! files = 1 of 20
SELECT a FROM t WHERE a >= 57 AND a <= 57;

--! files = 0 of 20
SELECT a FROM t WHERE a > 57 AND a < 57;

--! files <= 1 of 20
SELECT a FROM t WHERE a > 56 AND a < 58;

--! files = 0 of 20
SELECT a FROM t WHERE a = 57 AND d = 6;

--! files = 1 of 20
SELECT a, d FROM t WHERE a = 57 AND d = 5;

--! files = 1 of 20
SELECT a, d FROM t WHERE a = 54 AND d IS NULL;

SELECT a, d FROM t WHERE d IS NULL AND (a < 10 OR b < 10);

SELECT count(*) FROM t WHERE d IS NULL OR d = 5;

SELECT count(*) FROM t WHERE NOT (d = 5);

SELECT count(*) FROM t WHERE NOT (d IS NULL OR d > 2);

SELECT count(*) FROM t WHERE NOT (d <=> 5) AND a BETWEEN 40 AND 69;

SELECT a FROM t WHERE d IN (5, 6) AND c = 7;

SELECT a FROM t WHERE c = 7 AND a < 30;

SELECT a FROM t WHERE a = b + 1;

SELECT a FROM t WHERE a = c;

SELECT a FROM t WHERE a < b AND a > 97;

SELECT a FROM t WHERE a = 57 AND rand() >= 0;

SELECT a FROM t WHERE a = 57 AND a = (SELECT 57);

SELECT a FROM t WHERE if(a = 57, b = 142, false);

SELECT a FROM t WHERE CASE WHEN a = 57 THEN true ELSE b = 57 END;

SELECT a FROM t WHERE coalesce(a = 57, false);

SELECT a FROM t WHERE (a = 57) = true;

SELECT a FROM t WHERE (a = 57) IS TRUE;

SELECT count(*) FROM t WHERE (a = 57) IS NOT TRUE;

SELECT count(*) FROM t WHERE (a = 57) = (b = 142);

SELECT a FROM t WHERE a IN (57, 58) AND NOT a IN (58, 59);

SELECT a FROM t WHERE named_struct('x', a) = named_struct('x', 57L);

SELECT a FROM t WHERE greatest(a, b) = 199;

SELECT a FROM t WHERE nullif(a, 57) IS NULL;

SELECT a FROM t WHERE a = least(57, 58);

SELECT a FROM t WHERE ((((a = 57))));

SELECT a FROM t WHERE (a=1 OR (a=12 OR (a=23 OR (a=34 OR (a=45 OR (a=56 OR (a=67 OR (a=78 OR (a=89 OR a=90)))))))));

SELECT a FROM t WHERE (a>1 AND (a>12 AND (a>23 AND (a>34 AND (a>45 AND (a>56 AND (a>67 AND (a>78 AND (a>89 AND a>197)))))))));

-- Spark's optimizer replaces NOT over a comparison by the opposite one, unless that rule is left out.
SET spark.sql.optimizer.excludedRules = org.apache.spark.sql.catalyst.optimizer.BooleanSimplification;

-- The row at each border is alone in its file.
--! files = 2 of 20
SELECT count(*), max(a) FROM t WHERE NOT (a > 10);

--! files = 1 of 20
SELECT count(*), max(a) FROM t WHERE NOT (a >= 10);

--! files = 20 of 20
SELECT count(*), min(a) FROM t WHERE NOT (a < 9);

--! files = 19 of 20
SELECT count(*), min(a) FROM t WHERE NOT (a <= 9);

--! files = 2 of 20
SELECT count(*), max(a) FROM t WHERE NOT (10 < a);

--! files = 1 of 20
SELECT a FROM t WHERE NOT (a != 57);

--! files = 20 of 20
SELECT count(*) FROM t WHERE NOT (a = 57);

--! files = 1 of 20
SELECT a FROM t WHERE NOT (a > 10 OR a < 10);

--! files = 2 of 20
SELECT count(*) FROM t WHERE NOT (a > 9 AND a < 190);

SELECT count(*) FROM t WHERE NOT (a + 1 > 11);

SELECT count(*) FROM t WHERE NOT (d <=> 5) AND a < 60;

SELECT count(*) FROM t WHERE NOT (d <=> NULL);
