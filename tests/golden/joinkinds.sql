-- Every kind of join in every way that Spark runs it: broadcast or shuffled, adaptive or planned once.
CREATE TABLE orders USING parquet AS
SELECT id AS o, CAST(IF(id % 50 = 3, NULL, id) AS INT) AS k, id % 7 AS v FROM range(0, 200, 1, 10);

CREATE TABLE returned USING parquet AS
SELECT /*+ COALESCE(1) */ * FROM VALUES (57, 'x'), (57, 'y'), (58, 'x'), (158, 'x'), (NULL, 'x'), (1000, 'x'), (12, 'z'), (NULL, 'z') AS r(k, why);

CREATE SIEVE INDEX ON orders (k, o) OPTIONS (shape = 'intervals', budget = '8KB');

--@ queries

-- Broadcast, adaptive.

--! files = 3 of 11
SELECT o, why FROM orders JOIN returned r ON orders.k = r.k AND why = 'x';

--! files = 3 of 11
SELECT o, why FROM returned r JOIN orders ON orders.k = r.k WHERE why = 'x';

--! files = 3 of 11
SELECT o FROM orders LEFT SEMI JOIN returned r ON orders.k = r.k AND why = 'x';

--! files = 3 of 11
SELECT o FROM orders WHERE k IN (SELECT k FROM returned WHERE why = 'x');

--! files = 3 of 11
SELECT o FROM orders WHERE EXISTS (SELECT 1 FROM returned r WHERE r.k = orders.k AND why = 'x');

--! files = 11 of 11
SELECT count(*), count(why), sum(o) FROM orders LEFT JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT o, r.k, why FROM orders RIGHT JOIN returned r ON orders.k = r.k AND why = 'x';

--! files = 11 of 11
SELECT count(*), count(o), count(why), sum(o) FROM orders FULL JOIN returned r ON orders.k = r.k AND why = 'x';

--! files = 11 of 11
SELECT count(*), sum(o) FROM orders LEFT ANTI JOIN returned r ON orders.k = r.k AND why = 'x';

--! files = 11 of 11
SELECT count(*), sum(o) FROM orders WHERE k NOT IN (SELECT k FROM returned WHERE why = 'y');

SELECT count(*) FROM orders WHERE k NOT IN (SELECT k FROM returned WHERE why = 'x');

--! files = 11 of 11
SELECT count(*), sum(o) FROM orders WHERE NOT EXISTS (SELECT 1 FROM returned r WHERE r.k = orders.k AND why = 'x');

SELECT o, why FROM orders JOIN returned r ON orders.k <=> r.k AND why = 'z';

--! files = 11 of 11
SELECT count(*), sum(o) FROM orders WHERE k IN (SELECT k FROM returned WHERE why = 'x') OR v = 3;

--! files = 2 of 11
SELECT o, why FROM orders JOIN returned r ON orders.k = r.k AND orders.o = r.k WHERE why = 'y';

--! files = 3 of 12
SELECT o, a.why, b.why FROM orders JOIN returned a ON orders.k = a.k JOIN returned b ON orders.o = b.k WHERE a.why = 'x' AND b.why = 'y';

--! files = 2 of 11
SELECT o, why FROM orders CROSS JOIN returned r WHERE orders.k = r.k AND why = 'z';

-- Shuffled, adaptive.

SET spark.sql.autoBroadcastJoinThreshold = -1;

SELECT o, why FROM orders JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT o, why FROM returned r JOIN orders ON orders.k = r.k WHERE why = 'x';

SELECT o FROM orders LEFT SEMI JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT o FROM orders WHERE k IN (SELECT k FROM returned WHERE why = 'x');

SELECT o FROM orders WHERE EXISTS (SELECT 1 FROM returned r WHERE r.k = orders.k AND why = 'x');

SELECT count(*), count(why), sum(o) FROM orders LEFT JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT o, r.k, why FROM orders RIGHT JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT count(*), count(o), count(why), sum(o) FROM orders FULL JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT count(*), sum(o) FROM orders LEFT ANTI JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT count(*), sum(o) FROM orders WHERE k NOT IN (SELECT k FROM returned WHERE why = 'y');

SELECT count(*) FROM orders WHERE k NOT IN (SELECT k FROM returned WHERE why = 'x');

SELECT count(*), sum(o) FROM orders WHERE NOT EXISTS (SELECT 1 FROM returned r WHERE r.k = orders.k AND why = 'x');

SELECT o, why FROM orders JOIN returned r ON orders.k <=> r.k AND why = 'z';

SELECT count(*), sum(o) FROM orders WHERE k IN (SELECT k FROM returned WHERE why = 'x') OR v = 3;

SELECT o, why FROM orders JOIN returned r ON orders.k = r.k AND orders.o = r.k WHERE why = 'y';

SELECT o, a.why, b.why FROM orders JOIN returned a ON orders.k = a.k JOIN returned b ON orders.o = b.k WHERE a.why = 'x' AND b.why = 'y';

SELECT o, why FROM orders CROSS JOIN returned r WHERE orders.k = r.k AND why = 'z';

-- Shuffled, planned once.

SET spark.sql.adaptive.enabled = false;

SELECT o, why FROM orders JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT o, why FROM returned r JOIN orders ON orders.k = r.k WHERE why = 'x';

SELECT o FROM orders LEFT SEMI JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT o FROM orders WHERE k IN (SELECT k FROM returned WHERE why = 'x');

SELECT o FROM orders WHERE EXISTS (SELECT 1 FROM returned r WHERE r.k = orders.k AND why = 'x');

SELECT count(*), count(why), sum(o) FROM orders LEFT JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT o, r.k, why FROM orders RIGHT JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT count(*), count(o), count(why), sum(o) FROM orders FULL JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT count(*), sum(o) FROM orders LEFT ANTI JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT count(*), sum(o) FROM orders WHERE k NOT IN (SELECT k FROM returned WHERE why = 'y');

SELECT count(*) FROM orders WHERE k NOT IN (SELECT k FROM returned WHERE why = 'x');

SELECT count(*), sum(o) FROM orders WHERE NOT EXISTS (SELECT 1 FROM returned r WHERE r.k = orders.k AND why = 'x');

SELECT o, why FROM orders JOIN returned r ON orders.k <=> r.k AND why = 'z';

SELECT count(*), sum(o) FROM orders WHERE k IN (SELECT k FROM returned WHERE why = 'x') OR v = 3;

SELECT o, why FROM orders JOIN returned r ON orders.k = r.k AND orders.o = r.k WHERE why = 'y';

SELECT o, a.why, b.why FROM orders JOIN returned a ON orders.k = a.k JOIN returned b ON orders.o = b.k WHERE a.why = 'x' AND b.why = 'y';

SELECT o, why FROM orders CROSS JOIN returned r WHERE orders.k = r.k AND why = 'z';

-- Broadcast, planned once.

SET spark.sql.autoBroadcastJoinThreshold = 10MB;

--! files = 3 of 11
SELECT o, why FROM orders JOIN returned r ON orders.k = r.k AND why = 'x';

--! files = 3 of 11
SELECT o, why FROM returned r JOIN orders ON orders.k = r.k WHERE why = 'x';

--! files = 3 of 11
SELECT o FROM orders LEFT SEMI JOIN returned r ON orders.k = r.k AND why = 'x';

--! files = 3 of 11
SELECT o FROM orders WHERE k IN (SELECT k FROM returned WHERE why = 'x');

--! files = 3 of 11
SELECT o FROM orders WHERE EXISTS (SELECT 1 FROM returned r WHERE r.k = orders.k AND why = 'x');

--! files = 11 of 11
SELECT count(*), count(why), sum(o) FROM orders LEFT JOIN returned r ON orders.k = r.k AND why = 'x';

SELECT o, r.k, why FROM orders RIGHT JOIN returned r ON orders.k = r.k AND why = 'x';

--! files = 11 of 11
SELECT count(*), count(o), count(why), sum(o) FROM orders FULL JOIN returned r ON orders.k = r.k AND why = 'x';

--! files = 11 of 11
SELECT count(*), sum(o) FROM orders LEFT ANTI JOIN returned r ON orders.k = r.k AND why = 'x';

--! files = 11 of 11
SELECT count(*), sum(o) FROM orders WHERE k NOT IN (SELECT k FROM returned WHERE why = 'y');

SELECT count(*) FROM orders WHERE k NOT IN (SELECT k FROM returned WHERE why = 'x');

--! files = 11 of 11
SELECT count(*), sum(o) FROM orders WHERE NOT EXISTS (SELECT 1 FROM returned r WHERE r.k = orders.k AND why = 'x');

SELECT o, why FROM orders JOIN returned r ON orders.k <=> r.k AND why = 'z';

--! files = 11 of 11
SELECT count(*), sum(o) FROM orders WHERE k IN (SELECT k FROM returned WHERE why = 'x') OR v = 3;

--! files = 2 of 11
SELECT o, why FROM orders JOIN returned r ON orders.k = r.k AND orders.o = r.k WHERE why = 'y';

--! files = 3 of 12
SELECT o, a.why, b.why FROM orders JOIN returned a ON orders.k = a.k JOIN returned b ON orders.o = b.k WHERE a.why = 'x' AND b.why = 'y';

--! files = 2 of 11
SELECT o, why FROM orders CROSS JOIN returned r WHERE orders.k = r.k AND why = 'z';
