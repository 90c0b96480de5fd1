-- Integers of every width: 20 files of 10 rows; `later` repeats each key of a file in a later one.
CREATE TABLE ints USING parquet AS
SELECT id AS b, CAST(id AS INT) AS i, CAST(id - 100 AS SMALLINT) AS s, CAST(id - 100 AS TINYINT) AS t,
  id * 46116860184273879L - 4611686018427387904L AS wide,
  CASE WHEN id % 50 = 7 THEN (id + 90) % 200 ELSE id END AS late
FROM range(0, 200, 1, 20);

CREATE SIEVE INDEX ON ints (b, i, s, t, wide, late) OPTIONS (error = 1);

--@ queries

--! files <= 2 of 20
SELECT b, i, s FROM ints WHERE b = 57;

--! files = 0 of 20
SELECT * FROM ints WHERE b = 200;

--! files = 0 of 20
SELECT * FROM ints WHERE b = 9223372036854775807;

--! files <= 2 of 20
SELECT i FROM ints WHERE i = 57;

--! files <= 2 of 20
SELECT s FROM ints WHERE s = -43;

--! files <= 2 of 20
SELECT t FROM ints WHERE t = -43;
