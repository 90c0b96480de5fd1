-- Integers of every width: 20 files of 10 rows; `late` repeats a file's key in a later file.
CREATE TABLE ints USING parquet AS
SELECT id AS b, CAST(id AS INT) AS i, CAST(id - 100 AS SMALLINT) AS s, CAST(id - 100 AS TINYINT) AS t,
  id * 46116860184273879L - 4611686018427387904L AS wide,
  CASE WHEN id % 50 = 7 THEN (id + 90) % 200 ELSE id END AS late
FROM range(0, 200, 1, 20);

CREATE TABLE ends USING parquet AS
SELECT CASE id WHEN 0 THEN -9223372036854775807L - 1 WHEN 39 THEN 9223372036854775807L ELSE id END AS b,
  CAST(CASE id WHEN 0 THEN -2147483648 WHEN 39 THEN 2147483647 ELSE id END AS INT) AS i
FROM range(0, 40, 1, 4);

CREATE SIEVE INDEX ON ints (b, i, s, t, wide, late) OPTIONS (error = 1);

CREATE SIEVE INDEX ON ends (b, i) OPTIONS (error = 1);

--@ queries

--! files = 1 of 20
SELECT b, i, s FROM ints WHERE b = 57;

--! files = 0 of 20
SELECT * FROM ints WHERE b = 200;

--! files = 0 of 20
SELECT * FROM ints WHERE b = -1;

--! files = 0 of 20
SELECT * FROM ints WHERE b = 9223372036854775807;

--! files = 1 of 20
SELECT i FROM ints WHERE i = 57;

--! files = 1 of 20
SELECT s FROM ints WHERE s = -43;

--! files = 1 of 20
SELECT t FROM ints WHERE t = -43;

--! files = 1 of 20
SELECT i FROM ints WHERE 57 = i;

--! files = 1 of 20
SELECT i FROM ints WHERE i <=> 57;

--! files = 0 of 20
SELECT i FROM ints WHERE i <=> NULL;

--! files <= 2 of 20
SELECT b FROM ints WHERE b < 4;

--! files <= 2 of 20
SELECT b FROM ints WHERE b <= 4;

--! files <= 2 of 20
SELECT b FROM ints WHERE b > 196;

--! files <= 2 of 20
SELECT b FROM ints WHERE 196 < b;

--! files <= 2 of 20
SELECT b FROM ints WHERE 199 <= b;

--! files <= 2 of 20
SELECT b FROM ints WHERE b >= 196;

--! files <= 2 of 20
SELECT b FROM ints WHERE 4 >= b;

--! files <= 4 of 20
SELECT count(*), min(b), max(b) FROM ints WHERE b BETWEEN 25 AND 44;

--! files = 0 of 20
SELECT count(*) FROM ints WHERE b BETWEEN 44 AND 25;

--! files <= 19 of 20
SELECT count(*) FROM ints WHERE b NOT BETWEEN 25 AND 44;

--! files <= 2 of 20
SELECT late FROM ints WHERE late = 97;

--! files <= 2 of 20
SELECT b, late FROM ints WHERE late = 147;

--! files = 0 of 20
SELECT b, late FROM ints WHERE late = 57;

--! files <= 1 of 20
SELECT wide FROM ints WHERE wide = -4611686018427387904;

--! files <= 2 of 20
SELECT count(*) FROM ints WHERE wide > 4500000000000000000;

--! files = 0 of 20
SELECT count(*) FROM ints WHERE wide = -9223372036854775808;

--! files = 20 of 20
SELECT count(*) FROM ints WHERE b != 57;

--! files = 20 of 20
SELECT count(*) FROM ints WHERE NOT (b = 57);

--! files = 0 of 20
SELECT count(*) FROM ints WHERE b IS NULL;

--! files = 20 of 20
SELECT count(*) FROM ints WHERE b IS NOT NULL;

--! files = 20 of 20
SELECT count(*) FROM ints WHERE b % 50 = 7;

--! files = 20 of 20
SELECT count(*) FROM ints WHERE b + i = 114;

--! files = 1 of 20
SELECT b FROM ints WHERE b = 57 AND i = 57 AND s = -43;

--! files = 0 of 20
SELECT b FROM ints WHERE b = 57 AND i = 157;

--! files = 1 of 20
SELECT b FROM ints WHERE b = 57 AND b % 2 = 1;

--! files = 2 of 20
SELECT b FROM ints WHERE b = 57 OR i = 157;

-- One side of OR has no index that could help.
--! files = 20 of 20
SELECT b FROM ints WHERE b = 57 OR b % 100 = 3;

--! files = 3 of 20
SELECT b FROM ints WHERE b IN (5, 105, 199);

--! files = 1 of 20
SELECT b FROM ints WHERE b IN (5, 6, 7, NULL);

--! files = 20 of 20
SELECT count(*) FROM ints WHERE b NOT IN (5, 6, 7);

--! files = 0 of 0
SELECT count(*) FROM ints WHERE b NOT IN (5, 6, NULL);

--! files = 1 of 4
SELECT b FROM ends WHERE b = 9223372036854775807;

--! files = 1 of 4
SELECT b FROM ends WHERE b = -9223372036854775808;

--! files <= 1 of 4
SELECT b FROM ends WHERE b < 0;

--! files <= 1 of 4
SELECT b FROM ends WHERE b >= 40;

--! files = 4 of 4
SELECT count(*) FROM ends WHERE b != 9223372036854775807;

--! files = 4 of 4
SELECT count(*) FROM ends WHERE b >= -9223372036854775808;

--! files = 1 of 4
SELECT i FROM ends WHERE i = -2147483648;

--! files = 1 of 4
SELECT i FROM ends WHERE i > 39;

--! files = 2 of 4
SELECT i FROM ends WHERE i NOT BETWEEN 1 AND 38;

--! files = 1 of 20
SELECT b FROM ints WHERE b = 57 LIMIT 10;

--! files <= 2 of 20
SELECT b FROM ints WHERE b > 190 ORDER BY b DESC LIMIT 3;

--! files = 1 of 20
SELECT b AS x FROM ints WHERE b = 50 + 7;

--! files = 1 of 20
SELECT * FROM (SELECT b + 0 AS z, i FROM ints) WHERE i = 57;

--! files = 1 of 20
SELECT `b` FROM ints AS q WHERE q.B = 57;
