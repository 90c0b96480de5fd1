-- The functions for SQL users: key codes, segments, and what a scan keeps of a table's files.
CREATE TABLE t USING parquet AS SELECT id AS a, date_add(DATE '1969-12-30', int(id)) AS d, id / 4 AS f, CAST(id / 4 AS DECIMAL(20,2)) AS p, concat('key-', id) AS s, if(id % 5 = 0, NULL, id % 2 = 1) AS b FROM range(0, 40, 1, 4);

CREATE SIEVE INDEX ON t (a, d, s);

CREATE SIEVE INDEX m ON t (s) OPTIONS (shape = map, budget = '1MB');

CREATE TABLE parts USING parquet PARTITIONED BY (p) AS SELECT a, a % 2 AS p FROM t;

CREATE SIEVE INDEX ON parts (a);

CREATE TABLE plain USING parquet AS SELECT a FROM t;

--@ queries

SELECT sieve_key(true), sieve_key(-128Y), sieve_key(9223372036854775807L), sieve_key(DATE '1969-12-31'), sieve_key(TIMESTAMP '1969-12-31 23:59:59.999999Z'), sieve_key(-1.25BD);

SELECT sieve_key(0.0D), sieve_key(-0.0D), sieve_key(-1.5F), sieve_key(double('-infinity')), sieve_key(double('NaN')), sieve_key(NULL);

SELECT sieve_key(''), sieve_key('sieve'), sieve_key('sieve, but longer'), sieve_key(X'FFFF'), sieve_key(99999999999999999999999999999999999999BD);

SELECT min(sieve_key(a)), max(sieve_key(d)), max(sieve_key(f)), max(sieve_key(p)), max(sieve_key(s)) FROM t;

SELECT sieve_key(b), count(*) FROM t GROUP BY sieve_key(b);

--! files = 4 of 4
SELECT a FROM t WHERE sieve_key(d) = -1;

SELECT sieve_key(array(1));

SELECT sieve_key(1, 2);

SELECT segment, first_key, last_key, expected_files FROM sieve_segments('t', 'a_sieve');

SELECT segment, first_key, last_key, expected_files FROM sieve_segments('T', 'D_SIEVE');

SELECT segment, first_key, last_key, expected_files FROM sieve_segments('golden_functions.`t`', 's_sieve');

SELECT segment, first_key, shape, expected_files FROM sieve_segments('t', 'm') WHERE shape = 'map';

SELECT count(*) FROM (SELECT 1 FROM sieve_segments('t', 'a_sieve') x JOIN sieve_segments('t', 'd_sieve') y ON x.segment = y.segment);

SELECT * FROM sieve_segments('t', 'nope');

SELECT * FROM sieve_segments('nope', 'a_sieve');

SELECT * FROM sieve_segments('t');

SELECT * FROM sieve_segments('t', uuid());

--! modes on strict thrift
SELECT kept, reason, count(*) FROM sieve_files('t', 'a = 15') GROUP BY kept, reason;

--! modes on strict thrift
SELECT kept, reason, count(*) FROM sieve_files('t', "a = 15 AND d = DATE '1970-01-14'") GROUP BY kept, reason;

--! modes on strict thrift
SELECT kept, reason, count(*) FROM sieve_files('t', "s IN ('key-3', 'key-4')") GROUP BY kept, reason;

--! modes on strict thrift
SELECT kept, reason, count(*) FROM sieve_files('t', 'f = 1') GROUP BY kept, reason;

--! modes on strict thrift
SELECT kept, reason, count(*) FROM sieve_files('parts', 'p = 1 AND a < 10') GROUP BY kept, reason;

--! modes on strict thrift
SELECT kept, reason, count(*) FROM sieve_files('plain', 'a = 1') GROUP BY kept, reason;

SELECT kept, reason, count(*) FROM sieve_files('t', 'a < 3 AND a > 5 AND false') GROUP BY kept, reason;

--! modes off
SELECT kept, reason, count(*) FROM sieve_files('t', 'a = 15') GROUP BY kept, reason;

SELECT * FROM sieve_files('nope', 'a = 1');

SELECT * FROM sieve_files('t..t', 'a = 1');
