-- Membership: short lists, long lists, lists with NULL and values of other types.
CREATE TABLE l USING parquet AS
SELECT id, CAST(id AS STRING) AS s, CAST(id * 1000 AS DECIMAL(12,2)) AS q, CASE WHEN id % 7 <> 0 THEN id * 100 END AS v,
  DATE_ADD(DATE '2020-01-01', CAST(id AS INT)) AS day
FROM range(0, 400, 1, 20);

CREATE SIEVE INDEX ON l (id, s, q, v, day) OPTIONS (shape = 'map');

--@ queries

SET spark.sql.ansi.enabled = true;

--! files = 1 of 20
SELECT id FROM l WHERE id IN (33);

--! files = 2 of 20
SELECT id FROM l WHERE id IN (33, 333);

--! files = 2 of 20
SELECT id FROM l WHERE id IN (33, 333, 33333, -1, NULL);

--! files = 20 of 20
SELECT count(*) FROM l WHERE id IN ({{0..399}});

--! files <= 2 of 20
SELECT id FROM l WHERE id IN ({{35..38}}, {{400..500}});

--! files = 0 of 20
SELECT id FROM l WHERE id IN ({{1000..11000}});

--! files <= 2 of 20
SELECT id FROM l WHERE id IN ({{395..10394}});

--! files <= 3 of 20
SELECT id FROM l WHERE id IN ({{-10000..2}}, 199);

--! files <= 3 of 20
SELECT count(*) FROM l WHERE v IN ({{10000..11999}});

--! files <= 3 of 20
SELECT v FROM l WHERE v IN ({{1000..3000 step 100}});

SELECT count(*) FROM l WHERE id NOT IN ({{0..397}});

SELECT count(*) FROM l WHERE v NOT IN ({{0..39000}});

SELECT count(*) FROM l WHERE v NOT IN (100, NULL);

--! files = 0 of 0
SELECT count(*) FROM l WHERE v NOT IN ({{1..100}}, NULL);

--! files <= 2 of 20
SELECT q FROM l WHERE q IN (33000, 333000);

--! files <= 2 of 20
SELECT q FROM l WHERE q IN (33000.00, 333000.00, 0.001);

SELECT q FROM l WHERE q IN ({{0..30000 step 500}});

--! files <= 8 of 20
SELECT s FROM l WHERE s IN ('33', '333', 'x', '');

SELECT count(*) FROM l WHERE s IN ({{100..199}});

--! files = 2 of 20
SELECT day FROM l WHERE day IN (DATE '2020-02-03', DATE '2020-11-29');

--! files = 2 of 20
SELECT day FROM l WHERE day IN ('2020-02-03', '2020-11-29');

--! files <= 3 of 20
SELECT id FROM l WHERE id IN (1, 2, 3) OR id IN (201, 202) OR id = 399;

--! files = 1 of 20
SELECT id FROM l WHERE id IN (1, 2, 3, 201) AND id IN (201, 202);

--! files = 1 of 20
SELECT id FROM l WHERE id IN (1, 2, 3, 201) AND id > 100;

SELECT id FROM l WHERE id IN (1, 2) AND v IN (100, 300);

SELECT id FROM l WHERE NOT (id IN ({{0..390}}));

SELECT id FROM l WHERE id IN (SELECT id FROM l WHERE id = 77);

SELECT id FROM l WHERE (id, s) IN ((33L, '33'), (34L, 'x'));

SELECT id FROM l WHERE id IN (33, v / 100) AND id < 40;

SELECT id FROM l WHERE id + 0 IN (33, 34);

SELECT id FROM l WHERE 33 IN (id, v);

SELECT id FROM l WHERE array_contains(array(33L, 34L), id);

