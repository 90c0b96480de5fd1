-- Indexes on tuples of columns: equalities, lists, joins and subqueries on several columns together.
CREATE TABLE orders USING parquet AS
SELECT CAST(IF(id % 40 = 3, NULL, id % 10) AS INT) AS tenant, CAST(IF(id % 50 = 4, NULL, id DIV 10) AS BIGINT) AS nr, IF(id % 60 = 5, NULL, concat('r', (id * 7) % 13)) AS region,
  id % 2 = 0 AS flag, CAST(id AS DOUBLE) / 4 AS price, id
FROM range(0, 400, 1, 10);

CREATE TABLE wanted USING parquet AS
SELECT * FROM VALUES (7, 5L, 'r9'), (8, 35L, 'r10'), (CAST(NULL AS INT), 5L, 'r1'), (3, CAST(NULL AS BIGINT), 'r2'), (9, 999L, 'r3') AS w(t, n, r);

CREATE SIEVE INDEX ON orders ((tenant, nr), (region, tenant, flag), (nr, id)) OPTIONS (budget = '16KB');

--@ queries

--! files = 1 of 10
SELECT id FROM orders WHERE tenant = 7 AND nr = 5;

--! files = 1 of 10
SELECT id FROM orders WHERE nr = 5 AND tenant = 7;

--! files = 1 of 10
SELECT id FROM orders WHERE (tenant, nr) = (7, 5L);

--! files = 2 of 10
SELECT id FROM orders WHERE (tenant, nr) IN ((7, 5L), (8, 35L), (1, 1000L));

--! files = 2 of 10
SELECT id FROM orders WHERE (nr, tenant) IN ((5L, 7), (35L, 8));

--! files = 2 of 10
SELECT id FROM orders WHERE tenant IN (7, 8) AND nr IN (5, 35);

--! files = 0 of 10
SELECT id FROM orders WHERE tenant = 7 AND nr = 1000;

SELECT id FROM orders WHERE tenant = 7 AND nr = NULL;

--! files = 10 of 10
SELECT id FROM orders WHERE tenant = 3 AND nr IS NULL;

--! files = 10 of 10
SELECT count(*) FROM orders WHERE tenant IS NULL AND nr = 4;

--! files = 10 of 10
SELECT count(*) FROM orders WHERE tenant <=> NULL AND nr <=> 4;

--! files = 1 of 10
SELECT id FROM orders WHERE tenant <=> 7 AND nr <=> 5;

--! files = 10 of 10
SELECT count(*) FROM orders WHERE tenant = 7;

--! files = 10 of 10
SELECT count(*) FROM orders WHERE NOT (tenant = 7 AND nr = 5);

--! files = 10 of 10
SELECT count(*) FROM orders WHERE (tenant, nr) NOT IN ((7, 5L), (8, 35L));

--! files = 10 of 10
SELECT count(*) FROM orders WHERE (tenant = 7 AND nr = 5) IS NULL;

--! files = 2 of 10
SELECT id FROM orders WHERE (tenant = 7 AND nr = 5) OR (tenant = 8 AND nr = 35);

--! files = 10 of 10
SELECT count(*) FROM orders WHERE tenant = 7 OR nr = 5;

--! files = 10 of 10
SELECT id FROM orders WHERE tenant = 7 AND nr BETWEEN 5 AND 6;

--! files = 1 of 10
SELECT id FROM orders WHERE tenant = 7 AND nr = 5 AND region = 'r9';

--! files = 1 of 10
SELECT id FROM orders WHERE tenant = 7 AND nr = 5 AND region = 'none';

--! files = 3 of 10
SELECT id FROM orders WHERE region = 'r10' AND tenant = 8 AND flag;

--! files = 3 of 10
SELECT count(*) FROM orders WHERE region = 'r9' AND tenant = 7 AND NOT flag;

--! files = 3 of 10
SELECT count(*) FROM orders WHERE region = 'r9' AND tenant = 7 AND flag = false;

--! files = 1 of 10
SELECT id FROM orders WHERE nr = 5 AND id = 57;

--! files = 1 of 10
SELECT id FROM orders WHERE nr = 5 AND id = 57.0;

--! files = 1 of 10
SELECT id FROM orders WHERE nr = 5.0 AND tenant = '7';

--! files = 4 of 12
SELECT id, r FROM orders JOIN wanted ON tenant = t AND nr = n;

--! files = 4 of 12
SELECT id FROM orders LEFT SEMI JOIN wanted ON tenant = t AND nr = n;

--! files = 4 of 12
SELECT id FROM orders WHERE (tenant, nr) IN (SELECT t, n FROM wanted);

--! files = 3 of 12
SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM wanted WHERE t = tenant AND n = nr AND r = 'r10');

--! files = 12 of 12
SELECT count(*) FROM orders LEFT ANTI JOIN wanted ON tenant = t AND nr = n;

--! files = 12 of 12
SELECT id, t, n FROM orders RIGHT JOIN wanted ON tenant = t AND nr = n;

--! files = 12 of 12
SELECT count(*), count(r) FROM orders LEFT JOIN wanted ON tenant = t AND nr = n;

--! files = 12 of 12
SELECT count(*), count(r), count(id) FROM orders FULL JOIN wanted ON tenant = t AND nr = n;

--! files = 12 of 12
SELECT count(*) FROM orders JOIN wanted ON tenant <=> t AND nr <=> n;

--! files = 12 of 12
SELECT /*+ MERGE(wanted) */ id FROM orders JOIN wanted ON tenant = t AND nr = n;

--! files = 4 of 12
SELECT id FROM orders JOIN wanted ON tenant = t AND nr = n AND region = r;
