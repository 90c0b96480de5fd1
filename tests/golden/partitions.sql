-- Partitions that Spark leaves out, and of the others the files that the index leaves out.
CREATE TABLE p USING parquet PARTITIONED BY (y, m) AS
SELECT id AS k, CONCAT('s', LPAD(id, 3, '0')) AS s, 2020 + CAST(id DIV 60 AS INT) AS y, CONCAT('m', CAST(id DIV 20 % 3 AS STRING)) AS m
FROM range(0, 240, 1, 24);

CREATE TABLE dims USING parquet AS SELECT 2020 + CAST(id AS INT) AS y, CONCAT('year', id) AS label, id * 60 + 7 AS wanted FROM range(0, 4, 1, 1);

CREATE TABLE pn (k BIGINT, p STRING) USING parquet PARTITIONED BY (p);

INSERT INTO pn SELECT id, CASE WHEN id < 10 THEN NULL WHEN id < 20 THEN '' WHEN id < 30 THEN 'a b' ELSE 'x=%' END FROM range(0, 40, 1, 4);

CREATE SIEVE INDEX ON p (k, s) OPTIONS (error = 1);

CREATE SIEVE INDEX ON pn (k) OPTIONS (error = 1);

--@ queries

--! files = 1 of 24
SELECT * FROM p WHERE k = 133;

--! files = 1 of 6
SELECT * FROM p WHERE k = 133 AND y = 2022;

--! files = 0 of 6
SELECT * FROM p WHERE k = 133 AND y = 2021;

--! files = 0 of 2
SELECT * FROM p WHERE k = 133 AND y = 2022 AND m = 'm1';

--! files = 1 of 2
SELECT * FROM p WHERE k = 133 AND y = 2022 AND m = 'm0';

--! files = 6 of 6
SELECT count(*) FROM p WHERE y = 2022;

--! files = 2 of 24
SELECT * FROM p WHERE k = 133 OR k = 33;

--! files = 24 of 24
SELECT count(*) FROM p WHERE k = 133 OR y = 2021;

--! files = 2 of 12
SELECT * FROM p WHERE (k = 133 OR k = 33) AND y IN (2020, 2022);

--! files <= 2 of 12
SELECT * FROM p WHERE (y = 2020 AND k = 33) OR (y = 2022 AND k = 133);

--! files = 1 of 24
SELECT * FROM p WHERE s = 's133';

--! files = 1 of 12
SELECT y, m, count(*) FROM p WHERE k BETWEEN 130 AND 135 AND y > 2021 GROUP BY y, m;

SELECT * FROM p WHERE k = y - 1889;

SELECT * FROM p WHERE k = 133 AND k + y > 2000;

SELECT * FROM p WHERE k = 133 AND concat(y, m) = '2022m0';

SELECT y, max(k) FROM p WHERE k > 230 GROUP BY y;

SELECT DISTINCT y FROM p WHERE k < 70;

SELECT count(*) FROM p WHERE y = 2022 AND k IS NULL;

SELECT p.k, label FROM p JOIN dims ON p.y = dims.y WHERE dims.label = 'year2' AND p.k = 133;

SELECT p.k, label FROM p JOIN dims ON p.y = dims.y AND p.k = dims.wanted;

SELECT count(*) FROM p WHERE y = (SELECT max(y) FROM dims) AND k > 200;

SELECT count(*) FROM p WHERE y IN (SELECT y FROM dims WHERE label = 'year1') AND k < 70;

SET spark.sql.optimizer.dynamicPartitionPruning.enabled = false;

SELECT p.k, label FROM p JOIN dims ON p.y = dims.y WHERE dims.label = 'year2' AND p.k = 133;

SELECT count(*) FROM p WHERE y IN (SELECT y FROM dims WHERE label = 'year1') AND k < 70;

SET spark.sql.optimizer.dynamicPartitionPruning.enabled = true;

SET spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly = false;

SELECT p.k, label FROM p JOIN dims ON p.y = dims.y WHERE dims.label = 'year2' AND p.k = 133;

SET spark.sql.adaptive.enabled = false;

--! files = 1 of 24
SELECT * FROM p WHERE k = 133;

SELECT p.k, label FROM p JOIN dims ON p.y = dims.y WHERE dims.label = 'year2' AND p.k > 130 AND p.k < 135;

SELECT a.k, b.k FROM p a JOIN p b ON a.k = b.k + 1 WHERE a.k = 133 AND b.y = 2022;

SELECT y, count(*) FROM p WHERE k IN (3, 133, 233) GROUP BY y;

SET spark.sql.adaptive.enabled = true;

SET spark.sql.adaptive.forceApply = true;

--! files = 1 of 24
SELECT * FROM p WHERE k = 133;

SELECT a.k, b.k FROM p a JOIN p b ON a.k = b.k + 1 WHERE a.k = 133 AND b.y = 2022;

SELECT y, count(*) FROM p WHERE k IN (3, 133, 233) GROUP BY y;

SET spark.sql.codegen.wholeStage = false;

--! files = 1 of 24
SELECT * FROM p WHERE k = 133;

SET spark.sql.codegen.wholeStage = true;

SET spark.sql.parquet.filterPushdown = false;

--! files = 1 of 24
SELECT * FROM p WHERE k = 133;

SET spark.sql.parquet.filterPushdown = true;

SET spark.sql.exchange.reuse = false;

SELECT count(*) FROM p a JOIN p b ON a.k = b.k WHERE a.k < 5 AND b.k < 5;

SET spark.sql.exchange.reuse = true;

SELECT count(*) FROM p a JOIN p b ON a.k = b.k WHERE a.k < 5 AND b.k < 5;

--! files = 1 of 4
SELECT k, p FROM pn WHERE k = 5;

--! files = 1 of 4
SELECT k, p FROM pn WHERE k = 25;

--! files = 1 of 4
SELECT k, p FROM pn WHERE k = 35;

--! files <= 1 of 2
SELECT k, p FROM pn WHERE p IS NULL AND k = 5;

--! files = 1 of 1
SELECT k FROM pn WHERE p = 'x=%' AND k = 35;

--! files = 0 of 1
SELECT k FROM pn WHERE p = 'x=%' AND k = 25;

SELECT p, count(*) FROM pn WHERE k > 15 GROUP BY p;
