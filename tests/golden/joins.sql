-- The table in joins, unions, CTEs, views and with itself: each scan is pruned by its own filters.
CREATE TABLE orders USING parquet AS
SELECT id AS o, id % 17 AS customer, DATE_ADD(DATE '2024-01-01', CAST(id DIV 2 AS INT)) AS day FROM range(0, 200, 1, 10);

CREATE TABLE items USING parquet AS
SELECT id DIV 2 AS o, id % 2 AS n, id * 1.5D AS price FROM range(0, 400, 1, 10);

CREATE TABLE customers USING parquet AS SELECT id AS customer, CONCAT('name', id) AS name FROM range(0, 17, 1, 2);

CREATE VIEW recent AS SELECT * FROM orders WHERE day >= DATE '2024-03-20';

CREATE VIEW both AS SELECT orders.o, day, price FROM orders JOIN items ON orders.o = items.o;

CREATE SIEVE INDEX ON orders (o, day) OPTIONS (error = 1);

CREATE SIEVE INDEX ON items (o) OPTIONS (error = 1);

--@ queries

--! files = 2 of 20
SELECT orders.o, n, price FROM orders JOIN items ON orders.o = items.o WHERE orders.o = 57;

--! files = 2 of 20
SELECT o, n, price FROM orders JOIN items USING (o) WHERE o = 57;

--! files = 2 of 20
SELECT o, n, price FROM orders NATURAL JOIN items WHERE o BETWEEN 57 AND 58;

--! files = 4 of 22
SELECT o, name FROM orders JOIN items USING (o) JOIN customers USING (customer) WHERE o = 57 AND n = 0;

--! files = 2 of 20
SELECT a.o, b.o FROM orders a JOIN orders b ON a.o = b.o + 100 WHERE a.o = 157 AND b.o = 57;

--! files = 11 of 20
SELECT a.o, count(b.o) FROM orders a JOIN orders b ON a.customer = b.customer WHERE a.o = 57 GROUP BY a.o;

--! files = 1 of 10
SELECT o FROM orders WHERE o = 57 UNION ALL SELECT 1L;

--! files = 2 of 20
SELECT o FROM orders WHERE o = 57 UNION ALL SELECT o FROM orders WHERE o = 157;

--! files = 2 of 20
SELECT o FROM (SELECT o FROM orders UNION ALL SELECT o FROM items) WHERE o = 57;

SELECT o FROM orders WHERE o < 3 INTERSECT SELECT o FROM items WHERE o < 5;

SELECT o FROM orders WHERE o < 3 EXCEPT SELECT o FROM items WHERE o = 1;

--! files = 2 of 20
SELECT l.o, r.n FROM orders l LEFT JOIN items r ON l.o = r.o AND r.n = 1 WHERE l.o = 57;

SELECT l.o, r.o FROM orders l RIGHT JOIN items r ON l.o = r.o AND l.o = 57 WHERE r.o IN (57, 58);

SELECT count(*), count(l.o), count(r.o) FROM (SELECT * FROM orders WHERE o = 57) l FULL JOIN (SELECT * FROM items WHERE o = 58) r ON l.o = r.o;

--! files = 2 of 20
SELECT o FROM orders LEFT SEMI JOIN items USING (o) WHERE o = 57;

SELECT o FROM orders LEFT ANTI JOIN items ON orders.o = items.o AND items.n = 5 WHERE o = 57;

SELECT count(*) FROM orders CROSS JOIN customers WHERE o = 57;

--! files = 2 of 20
WITH c AS (SELECT * FROM orders WHERE o > 195) SELECT a.o, b.o FROM c a JOIN c b ON a.o = b.o + 1;

--! files = 2 of 20
WITH c AS (SELECT * FROM orders) SELECT a.o, b.o FROM c a, c b WHERE a.o = 57 AND b.o = 157;

--! files = 2 of 20
WITH c AS (SELECT o, customer FROM orders) SELECT * FROM c WHERE o = 57 UNION ALL SELECT * FROM c WHERE o = 158;

WITH c AS (SELECT o, rand() >= 0 AS r FROM orders) SELECT a.o FROM c a JOIN c b ON a.o = b.o WHERE a.o = 57 AND b.r;

WITH RECURSIVE_FREE AS (SELECT o FROM orders WHERE o = 57), d AS (SELECT o + 1 AS o FROM RECURSIVE_FREE) SELECT orders.o FROM d JOIN orders ON d.o = orders.o;

--! files = 1 of 10
SELECT o FROM recent WHERE o = 180;

--! files = 0 of 10
SELECT o FROM recent WHERE o = 57;

--! files <= 5 of 10
SELECT count(*), min(o) FROM recent;

--! files = 2 of 20
SELECT o, price FROM both WHERE o = 57;

SELECT recent.o, both.price FROM recent JOIN both ON recent.o = both.o WHERE recent.o = 180;

CREATE TEMPORARY VIEW mine AS SELECT o, day FROM orders WHERE customer = 6;

--! files = 1 of 10
SELECT o FROM mine WHERE o = 57;

--! files = 1 of 10
SELECT q FROM (SELECT o AS q, customer FROM (SELECT * FROM orders WHERE o > 50)) WHERE q = 57;

--! files = 1 of 10
SELECT customer, count(*) FROM orders WHERE o = 57 GROUP BY customer HAVING count(*) > 0;

--! files = 1 of 10
SELECT o, row_number() OVER (ORDER BY o) FROM orders WHERE o BETWEEN 55 AND 58;

SELECT * FROM (SELECT o, sum(o) OVER (PARTITION BY customer) AS s FROM orders) WHERE o = 57;

SELECT * FROM (SELECT o, sum(o) OVER (PARTITION BY o) AS s FROM orders) WHERE o = 57;

SELECT o, s FROM (SELECT o, count(*) AS s FROM items GROUP BY o) WHERE o = 57;

SELECT * FROM (SELECT o, customer FROM orders WHERE o < 4) PIVOT (count(*) FOR customer IN (0, 1));

--! files = 1 of 10
SELECT o FROM orders WHERE o = 57 DISTRIBUTE BY o SORT BY o;

SELECT DISTINCT o FROM items WHERE o BETWEEN 57 AND 58;

SELECT /*+ BROADCAST(orders) */ items.n FROM items JOIN orders ON items.o = orders.o WHERE orders.day = DATE '2024-01-29';

SELECT /*+ MERGE(orders) */ items.n FROM items JOIN orders ON items.o = orders.o WHERE orders.day = DATE '2024-01-29';

SELECT /*+ SHUFFLE_HASH(orders) */ items.n FROM items JOIN orders ON items.o = orders.o WHERE orders.day = DATE '2024-01-29';
