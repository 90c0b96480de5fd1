-- Indexes on fields of structs in arrays: NULL structs' fields, several fields in one condition, ranges.
CREATE TABLE posts USING parquet AS
SELECT id,
  array(named_struct('sku', concat('s', id), 'price', CAST(IF(id % 9 = 2, NULL, id) AS DOUBLE)), named_struct('sku', NULL, 'price', -1.0D)) AS items
FROM range(0, 400, 1, 10);

CREATE SIEVE INDEX ON posts (items.sku, items.price) OPTIONS (budget = '16KB');

--@ queries

--! files = 1 of 10
SELECT id FROM posts WHERE exists(items, i -> i.sku = 's57');

--! files = 1 of 10
SELECT id FROM posts WHERE exists(items, i -> i.sku = 's57' AND i.price = 57);

--! files = 0 of 10
SELECT id FROM posts WHERE exists(items, i -> i.sku = 's57' AND i.price = 358);

--! files = 1 of 10
SELECT id FROM posts WHERE exists(items, i -> i.price > 398);

--! files = 10 of 10
SELECT count(*) FROM posts WHERE exists(items, i -> i.price = -1);

--! files = 1 of 10
SELECT id FROM posts WHERE array_contains(items.sku, 's358');
