-- The statements themselves: what each answers; times, sizes and ids are masked.
CREATE TABLE t USING parquet AS SELECT id AS a, CAST(id AS STRING) AS b, named_struct('x', id) AS s FROM range(0, 40, 1, 4);

CREATE TABLE plain USING parquet AS SELECT id AS a FROM range(0, 40, 1, 4);

--@ queries

DROP SIEVE INDEX IF EXISTS a_sieve ON t;

DROP SIEVE INDEX IF EXISTS second ON t;

DROP SIEVE INDEX IF EXISTS ON t (s.x);

SHOW SIEVE INDEXES;

SHOW SIEVE INDEXES ON t;

CREATE SIEVE INDEX ON t (a) OPTIONS (error = 1) COMMENT 'the key';

create sieve index if not exists on table t (a);

CREATE SIEVE INDEX ON t (a);

CREATE SIEVE INDEX /* why */ second -- not the first
  ON t (b) OPTIONS ('error' = '7', shape = sieve);

CREATE SIEVE INDEX ON t (s.x);

SHOW SIEVE INDEXES ON t;

SHOW SIEVE INDEXES;

SHOW SIEVE INDEXES IN golden_statements;

DESCRIBE SIEVE INDEX a_sieve ON t;

DESC SIEVE INDEX EXTENDED A_SIEVE ON T;

DESCRIBE SIEVE INDEX missing ON t;

DESCRIBE SIEVE INDEX a_siev ON t;

--! modes on strict thrift
EXPLAIN SIEVE SELECT * FROM t WHERE a = 15;

--! modes on strict thrift
EXPLAIN SIEVE SELECT * FROM t WHERE a = 15 AND s.x = 15;

--! modes on strict thrift
EXPLAIN SIEVE SELECT * FROM t WHERE a = -5;

--! modes on strict thrift
EXPLAIN SIEVE SELECT * FROM t WHERE a % 10 = 5;

--! modes on strict thrift
EXPLAIN SIEVE SELECT count(*) FROM t;

--! modes on strict thrift
EXPLAIN SIEVE SELECT * FROM plain WHERE a = 15;

--! modes on strict thrift
EXPLAIN SIEVE SELECT x.a FROM t x JOIN plain y ON x.a = y.a WHERE x.a = 15 AND y.a = 15;

--! modes off
EXPLAIN SIEVE SELECT * FROM t WHERE a = 15;

REFRESH SIEVE INDEX ON t;

REFRESH SIEVE INDEX a_sieve ON t;

REFRESH SIEVE INDEX a_sieve ON t FULL;

REFRESH SIEVE INDEX ON t (s.x) FULL;

REFRESH SIEVE INDEX nope ON t;

ALTER SIEVE INDEX a_sieve ON t SET OPTIONS (error = 9);

DESCRIBE SIEVE INDEX a_sieve ON t;

REFRESH SIEVE INDEX a_sieve ON t;

ALTER SIEVE INDEX a_sieve ON t SET OPTIONS (errors = 9);

ALTER SIEVE INDEX a_sieve ON t SET OPTIONS (error = 0);

ALTER SIEVE INDEX a_sieve ON t DISABLE;

SHOW SIEVE INDEXES ON t;

--! modes on strict thrift
EXPLAIN SIEVE SELECT * FROM t WHERE a = 15;

SELECT a FROM t WHERE a = 15;

ALTER SIEVE INDEX a_sieve ON t ENABLE;

--! files <= 1 of 4
SELECT a FROM t WHERE a = 15;

ALTER SIEVE INDEX nope ON t ENABLE;

CREATE SIEVE INDEX second ON t (a);

CREATE SIEVE INDEX ON t (a, a);

CREATE SIEVE INDEX ON t (s);

CREATE SIEVE INDEX ON t (nope);

CREATE SIEVE INDEX ON nope (a);

CREATE SIEVE INDEX ON t (a) OPTIONS (error = 1000001);

CREATE SIEVE INDEX ON t (a) OPTIONS (nope = 1);

CREATE SIEVE INDEX two ON t (a, b);

CREATE SIEVE INDEX ON t;

CREATE SIEVE INDX ON t (a);

CREATE SIEVE TABLE t (a INT);

SHOW SIEVE;

EXPLAIN SIEVE;

DROP SIEVE INDEX nope ON t;

DROP SIEVE INDEX ON t (nope);

DROP SIEVE INDEX ON t;

DROP SIEVE INDEX ON t (s.x);

DROP SIEVE INDEX second ON t;

DROP SIEVE INDEX a_sieve ON t;

SHOW SIEVE INDEXES;

SELECT a FROM t WHERE a = 15;

-- Words of Sieve's statements stay free for everybody else.
SELECT 'CREATE SIEVE INDEX ON t (a)' AS sieve, 1 AS index;

SELECT sieve FROM (SELECT a AS sieve FROM t WHERE a = 15);
