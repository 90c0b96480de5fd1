-- Statements that read an indexed table and write another; the indexed table as target.
CREATE TABLE t USING parquet AS SELECT id AS a, id % 7 AS b FROM range(0, 100, 1, 10);

CREATE TABLE parts USING parquet PARTITIONED BY (p) AS SELECT id AS a, CAST(id DIV 50 AS INT) AS p FROM range(0, 100, 1, 10);

CREATE SIEVE INDEX ON t (a) OPTIONS (error = 1);

CREATE SIEVE INDEX ON parts (a) OPTIONS (error = 1);

--@ queries

DROP TABLE IF EXISTS made;

CREATE TABLE made USING parquet AS SELECT * FROM t WHERE a BETWEEN 25 AND 27;

SELECT * FROM made;

INSERT INTO made SELECT * FROM t WHERE a = 57;

SELECT * FROM made;

INSERT OVERWRITE made SELECT * FROM t WHERE a = 58;

SELECT * FROM made;

INSERT INTO made SELECT x.a, y.b FROM t x JOIN t y ON x.a = y.a + 1 WHERE x.a = 33;

SELECT * FROM made;

INSERT OVERWRITE TABLE made (b, a) SELECT b, a FROM t WHERE a IN (1, 2, 99);

SELECT * FROM made;

FROM t INSERT OVERWRITE made SELECT a, b WHERE a = 5 INSERT INTO made SELECT a, b WHERE a = 95;

SELECT * FROM made;

TRUNCATE TABLE made;

SELECT * FROM made;

DROP TABLE IF EXISTS hive_made;

CREATE TABLE hive_made STORED AS ORC AS SELECT * FROM t WHERE a > 96;

SELECT * FROM hive_made;

INSERT OVERWRITE TABLE hive_made SELECT * FROM t WHERE a < 3;

SELECT * FROM hive_made;

DROP TABLE IF EXISTS copied;

CREATE TABLE copied USING parquet PARTITIONED BY (p) AS SELECT a, p FROM parts WHERE a > 47 AND a < 52;

SELECT * FROM copied;

INSERT OVERWRITE copied PARTITION (p = 1) SELECT a FROM parts WHERE p = 0 AND a = 7;

SELECT * FROM copied;

CACHE TABLE kept AS SELECT * FROM t WHERE a = 57;

SELECT * FROM kept;

SELECT t.a FROM kept JOIN t ON kept.a = t.a + 1 WHERE t.a = 56;

UNCACHE TABLE kept;

CACHE TABLE t;

SELECT * FROM t WHERE a = 57;

SELECT count(*) FROM t WHERE a < 10 OR a > 95;

UNCACHE TABLE t;

--! files = 1 of 10
SELECT * FROM t WHERE a = 57;

CACHE LAZY TABLE t OPTIONS ('storageLevel' 'DISK_ONLY');

SELECT * FROM t WHERE a = 58;

SELECT * FROM t WHERE a = 57;

UNCACHE TABLE IF EXISTS t;

CREATE TEMPORARY VIEW tv AS SELECT a, b FROM t WHERE a < 40;

CACHE TABLE tv;

SELECT * FROM tv WHERE a = 33;

SELECT * FROM tv WHERE a = 57;

UNCACHE TABLE tv;

DROP TABLE made;

DROP TABLE hive_made;

DROP TABLE copied;
