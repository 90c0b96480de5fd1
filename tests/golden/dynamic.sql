-- The queries of Spark's suite of dynamic partition pruning, over tables whose join keys have indexes:
-- facts without partitions, where keys pick files, and with them, where Spark's own keys pick partitions.
CREATE TABLE fact USING parquet AS
SELECT CAST(1000 + id * 10 AS INT) AS date_id, CAST(1 + id DIV 8 AS INT) AS store_id, CAST(1 + id % 5 AS INT) AS product_id,
  CAST(id * 7 % 8 * 10 AS INT) AS units_sold, CAST(id DIV 8 AS BYTE) AS two, CAST(1 + id DIV 8 AS STRING) AS str
FROM range(0, 80, 1, 10);

CREATE TABLE fact_sk USING parquet PARTITIONED BY (store_id) AS
SELECT date_id, product_id, units_sold, store_id FROM fact;

CREATE TABLE dim_store USING parquet AS
SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'North-Holland', 'NL'), (2, 'South-Holland', 'NL'), (3, 'Bavaria', 'DE'), (4, 'California', 'US'),
  (5, 'Texas', 'US'), (6, 'Texas', 'US'), (NULL, 'Atlantis', 'NL') AS s(store_id, state_province, country);

CREATE TABLE dim_stats USING parquet AS SELECT /*+ COALESCE(1) */ * FROM dim_store WHERE store_id IS NOT NULL;

CREATE TABLE code_stats USING parquet PARTITIONED BY (store_id) AS
SELECT CAST(id * 10 AS INT) AS code, CAST(id AS INT) AS store_id FROM range(1, 7);

CREATE TABLE product USING parquet AS SELECT id AS product_id, id % 10 AS store_id, id + 1 AS code FROM range(0, 100, 1, 2);

CREATE TABLE dim USING parquet AS
SELECT CAST(id AS INT) AS one, CAST(id - 1 AS BYTE) AS two, CAST(id AS STRING) AS str, id * 10 AS prod FROM range(1, 11, 1, 1);

CREATE TABLE duplicate_keys USING parquet AS SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'NL'), (1, 'NL'), (3, 'US'), (3, 'US'), (3, 'US') AS d(store_id, country);

ANALYZE TABLE fact COMPUTE STATISTICS FOR COLUMNS store_id;

ANALYZE TABLE dim_stats COMPUTE STATISTICS FOR COLUMNS store_id;

CREATE SIEVE INDEX ON fact (date_id, store_id, product_id, two, str) OPTIONS (shape = 'intervals', budget = '8KB');

CREATE SIEVE INDEX ON fact_sk (date_id, product_id) OPTIONS (shape = 'intervals', budget = '8KB');

CREATE SIEVE INDEX ON product (product_id, store_id) OPTIONS (shape = 'intervals', budget = '8KB');

--@ queries

-- Which joins prune.

--! files = 3 of 11
SELECT f.date_id, f.store_id FROM fact f JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL';

SELECT f.date_id, f.store_id FROM fact_sk f JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL';

SELECT count(*) FROM product p WHERE p.store_id NOT IN (SELECT f.store_id FROM fact f JOIN dim_store d ON f.store_id = d.store_id WHERE d.state_province = 'NL');

SELECT count(*), sum(store_id) FROM product p WHERE p.store_id NOT IN (SELECT f.store_id FROM fact f JOIN dim_store d ON f.store_id = d.store_id WHERE d.country = 'DE');

--! files = 3 of 11
SELECT date_id FROM fact f LEFT SEMI JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL';

--! files = 11 of 11
SELECT s.store_id FROM dim_store s LEFT SEMI JOIN fact f ON f.store_id = s.store_id AND s.country = 'NL';

SELECT f.date_id, s.country FROM fact f JOIN dim_store s ON f.date_id = s.store_id + 1007 WHERE s.country = 'DE';

--! files = 7 of 11
SELECT count(*), max(f.date_id) FROM fact f JOIN dim_store s ON f.store_id = s.store_id;

--! files = 11 of 11
SELECT f.date_id, s.country FROM fact f LEFT OUTER JOIN dim_store s ON f.store_id = s.store_id WHERE f.units_sold = 10;

SELECT f.date_id, s.country FROM fact f RIGHT OUTER JOIN dim_store s ON f.store_id = s.store_id WHERE s.country = 'NL';

--! files = 11 of 11
SELECT f.date_id, s.country FROM fact f FULL OUTER JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL' WHERE f.units_sold = 10 OR s.country = 'DE';

--! files = 11 of 11
SELECT count(*) FROM fact f LEFT ANTI JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL';

-- Predicates of the other side.

SELECT f.date_id, f.product_id, f.units_sold, f.store_id FROM fact f JOIN dim_store s ON f.store_id = s.store_id WHERE s.country LIKE '%C_%';

--! files = 2 of 11
SELECT date_id, product_id FROM fact f JOIN dim_store s ON f.store_id = s.store_id WHERE s.country LIKE ANY ('%D%E%', '%A%B%');

--! files = 5 of 11
SELECT date_id, product_id FROM fact f JOIN dim_store s ON f.store_id = s.store_id WHERE s.country RLIKE '[DE|US]' AND date_id > 1100;

SELECT * FROM fact f JOIN dim_store s ON f.store_id = s.store_id WHERE s.country = 'XYZ';

SELECT * FROM fact_sk f JOIN dim_store s ON f.store_id = s.store_id WHERE s.country = 'XYZ';

SELECT count(*) FROM fact f JOIN dim_stats s ON f.store_id = s.store_id WHERE s.store_id > 0 AND s.store_id IN (SELECT p.store_id FROM product p);

SELECT f.date_id FROM fact f JOIN (SELECT store_id + 3 AS new_store_id FROM dim_store WHERE country = 'US') s ON f.store_id = s.new_store_id WHERE f.units_sold > 50;

--! files = 2 of 11
SELECT date_id, product_id FROM fact f JOIN duplicate_keys s ON f.store_id = s.store_id WHERE s.country = 'US' AND date_id > 1050 AND units_sold = 0;

SELECT f.date_id, f.store_id FROM fact f JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL' WHERE s.state_province != (SELECT max(state_province) FROM dim_stats);

SELECT f.date_id, s.store_id FROM fact f JOIN dim_stats s ON f.store_id = s.store_id WHERE s.store_id < (SELECT max(store_id) FROM dim_stats WHERE store_id <= 3) AND f.units_sold = 0;

-- Keys that are expressions and aliases.

SELECT f.date_id, f.product_id, f.units_sold FROM fact f JOIN dim_stats s ON f.store_id + 1 = s.store_id WHERE s.country = 'DE';

--! files = 2 of 11
SELECT f.date_id, f.pid, f.sid FROM (SELECT date_id, product_id AS pid, store_id AS sid FROM fact) AS f JOIN dim_stats s ON f.sid = s.store_id WHERE s.country = 'DE';

SELECT f.date_id, f.pid, f.sid FROM (SELECT date_id, product_id AS pid, store_id AS sid FROM fact) AS f JOIN dim_stats s ON f.sid + 1 = s.store_id + 1 WHERE s.country = 'DE';

SELECT f.date_id, f.pid, f.sid FROM (SELECT date_id, pid_d AS pid, sid_d AS sid FROM (SELECT date_id, product_id AS pid_d, store_id AS sid_d FROM fact) fs JOIN dim_store ds ON fs.sid_d = ds.store_id) f JOIN dim_stats s ON f.sid = s.store_id WHERE s.country = 'DE';

SELECT f.date_id, f.pid_d AS pid, f.sid_d AS sid FROM (SELECT date_id, pid_dd AS pid_d, sid_dd AS sid_d FROM ((SELECT date_id, product_id AS pid_dd, store_id AS sid_dd FROM fact) fss JOIN dim_store ds ON fss.sid_dd = ds.store_id) fs JOIN dim_store ds ON fs.sid_dd = ds.store_id) f JOIN dim_stats s ON f.sid_d = s.store_id WHERE s.country = 'DE';

SELECT count(*) >= 0 FROM (SELECT date_id, product_id AS pid, store_id AS sid FROM fact WHERE RAND() > 0.5) AS f JOIN dim_stats s ON f.sid = s.store_id WHERE s.country = 'DE';

SELECT f.date_id, f.product_id FROM fact f JOIN dim_stats s ON struct(f.store_id) = struct(s.store_id) WHERE s.country = 'DE';

SELECT f.date_id, f.product_id FROM fact f JOIN dim_stats s ON array(f.store_id) = array(s.store_id) WHERE s.country = 'DE';

SELECT f.date_id FROM fact f JOIN dim d ON f.str || f.store_id = d.str || d.one WHERE d.one = (SELECT min(p.two) + 4 FROM dim p);

-- Keys of each type, and several.

--! files = 3 of 11
SELECT f.date_id, f.two, f.str FROM fact f JOIN dim d ON f.store_id = d.one WHERE d.prod > 80;

--! files = 3 of 11
SELECT f.date_id, f.two, f.str FROM fact f JOIN dim d ON f.two = d.two WHERE d.prod > 80;

--! files <= 4 of 11
SELECT f.date_id, f.two, f.str FROM fact f JOIN dim d ON f.str = d.str WHERE d.prod > 80;

--! files = 3 of 11
SELECT f.date_id, f.two, f.str FROM fact f JOIN dim d ON f.store_id = d.one AND f.two = d.two AND f.str = d.str WHERE d.prod > 80;

SELECT f.date_id, f.two FROM fact f LEFT JOIN dim a ON f.store_id = a.one AND f.two = a.two JOIN dim b ON f.two = b.two AND f.store_id = b.one WHERE b.prod > 80;

SELECT d.one, f.two FROM (SELECT store_id, f.two FROM fact f JOIN dim d ON store_id = one AND f.two = d.two WHERE prod > 10) f JOIN dim d ON f.two = d.two AND store_id = one WHERE prod < 40;

-- CTEs, unions, subqueries, self-joins.

WITH aux AS (SELECT fact.product_id AS frequent FROM fact, dim_store d, product p WHERE fact.store_id = d.store_id AND d.country IN ('US', 'DE') AND fact.product_id = p.code GROUP BY fact.product_id HAVING count(*) > 3)
SELECT sum(sales) FROM (SELECT units_sold AS sales FROM product p, dim_store d, aux, fact WHERE d.country = 'NL' AND fact.store_id = d.store_id AND fact.product_id = p.code AND p.code = frequent);

SELECT d.store_id, sum(f.units_sold), (SELECT sum(f.units_sold) FROM fact f JOIN dim_stats d ON d.store_id = f.store_id WHERE d.country = 'US') AS total FROM fact f JOIN dim_stats d ON d.store_id = f.store_id WHERE d.country = 'US' GROUP BY 1;

WITH v AS (SELECT f.store_id FROM fact f WHERE f.units_sold = 70) SELECT * FROM v v1 JOIN v v2 WHERE v1.store_id = v2.store_id;

WITH v AS (SELECT f.store_id FROM fact f WHERE f.units_sold = 70 GROUP BY f.store_id) SELECT * FROM v v1 JOIN v v2 WHERE v1.store_id = v2.store_id;

SELECT count(b.date_id) FROM fact_sk a JOIN (SELECT * FROM (SELECT *, lag(units_sold) OVER (PARTITION BY store_id ORDER BY date_id) AS earlier FROM fact_sk) WHERE product_id = 3 AND units_sold > earlier) b ON a.store_id = b.store_id AND a.date_id = b.date_id;

SELECT s.store_id, f.product_id FROM (SELECT DISTINCT * FROM fact) f JOIN (SELECT *, row_number() OVER (PARTITION BY store_id ORDER BY state_province DESC) AS rn FROM dim_store) s ON f.store_id = s.store_id WHERE s.country = 'DE' AND s.rn = 1;

SELECT f.store_id, f.date_id, s.state_province FROM (SELECT 4 AS store_id, date_id, product_id FROM fact_sk WHERE date_id >= 1780 UNION ALL SELECT 5 AS store_id, date_id, product_id FROM fact WHERE date_id <= 1010) f JOIN dim_store s ON f.store_id = s.store_id WHERE s.country = 'US';

SELECT f.store_id, f.date_id, s.state_province FROM (SELECT store_id, date_id, product_id FROM fact WHERE date_id <= 1010 UNION ALL SELECT 4 AS store_id, date_id, product_id FROM fact_sk WHERE date_id >= 1780) f JOIN dim_store s ON f.store_id = s.store_id WHERE s.country IN ('US', 'NL');

SELECT f.date_id, f.store_id FROM (SELECT date_id, store_id FROM fact WHERE units_sold = 0 UNION ALL SELECT date_id, store_id FROM fact) f JOIN dim_stats s ON f.store_id = s.store_id WHERE s.country = 'DE' AND f.date_id > 1200;

WITH empty_result AS (SELECT * FROM fact WHERE product_id < 0) SELECT * FROM (SELECT /*+ SHUFFLE_MERGE(fact_sk) */ empty_result.store_id FROM fact_sk JOIN empty_result ON fact_sk.product_id = empty_result.product_id) t2 JOIN empty_result ON t2.store_id = empty_result.store_id;

-- Constants beside the keys; which side is broadcast.

--! files = 2 of 11
SELECT /*+ broadcast(s) */ date_id, country FROM fact f JOIN dim_store s ON f.store_id = s.store_id AND f.store_id = 1;

SELECT /*+ broadcast(s) */ date_id, country FROM dim_store s JOIN fact f ON f.store_id = s.store_id WHERE f.store_id <=> 1;

--! files = 5 of 11
SELECT /*+ broadcast(s) */ date_id, country FROM dim_store s JOIN fact f ON f.store_id = s.store_id WHERE 6 > f.store_id AND f.store_id > 1;

SELECT f.date_id, f.store_id, f.units_sold FROM fact f JOIN code_stats s ON f.store_id = s.store_id WHERE f.date_id <= 1030;

SELECT /*+ BROADCAST(f) */ f.date_id, f.store_id, f.units_sold FROM fact f JOIN code_stats s ON f.store_id = s.store_id WHERE f.date_id <= 1030;

--! files = 2 of 12
SELECT /*+ BROADCAST(f) */ p.code FROM fact f JOIN product p ON f.product_id = p.product_id WHERE f.date_id = 1030;

-- Shuffled joins, then all of it planned once.

SELECT /*+ MERGE(s) */ f.date_id, f.store_id FROM fact f JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL';

SELECT /*+ SHUFFLE_HASH(s) */ f.date_id, f.store_id FROM fact f JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL';

SELECT /*+ SHUFFLE_REPLICATE_NL(s) */ f.date_id, f.store_id FROM fact f JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL';

SET spark.sql.adaptive.enabled = false;

--! files = 3 of 11
SELECT f.date_id, f.store_id FROM fact f JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL';

SELECT /*+ MERGE(s) */ f.date_id, f.store_id FROM fact f JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL';

SELECT /*+ SHUFFLE_HASH(s) */ f.date_id, f.store_id FROM fact f JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL';

SELECT f.date_id, f.store_id FROM fact_sk f JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL';

--! files = 1 of 11
SELECT * FROM fact f JOIN dim_store s ON f.store_id = s.store_id WHERE s.country = 'XYZ';

SELECT f.store_id, f.date_id, s.state_province FROM (SELECT store_id, date_id, product_id FROM fact WHERE date_id <= 1010 UNION ALL SELECT 4 AS store_id, date_id, product_id FROM fact_sk WHERE date_id >= 1780) f JOIN dim_store s ON f.store_id = s.store_id WHERE s.country IN ('US', 'NL');

SELECT d.store_id, sum(f.units_sold), (SELECT sum(f.units_sold) FROM fact f JOIN dim_stats d ON d.store_id = f.store_id WHERE d.country = 'US') AS total FROM fact f JOIN dim_stats d ON d.store_id = f.store_id WHERE d.country = 'US' GROUP BY 1;

WITH v AS (SELECT f.store_id FROM fact f WHERE f.units_sold = 70) SELECT * FROM v v1 JOIN v v2 WHERE v1.store_id = v2.store_id;

SELECT f.date_id, s.store_id FROM fact f JOIN dim_stats s ON f.store_id = s.store_id WHERE s.store_id < (SELECT max(store_id) FROM dim_stats WHERE store_id <= 3) AND f.units_sold = 0;

SET spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly = false;

SELECT f.date_id, f.store_id FROM fact_sk f JOIN dim_store s ON f.store_id = s.store_id AND s.country = 'NL';

SELECT f.store_id, f.date_id FROM fact_sk f JOIN fact g ON f.store_id = g.store_id AND f.date_id = g.date_id JOIN dim_store s ON g.store_id = s.store_id WHERE s.country = 'DE';
