-- Indexes on elements of arrays: NULL arrays, empty arrays, NULL elements, keys and values of maps.
CREATE TABLE posts USING parquet AS
SELECT id, CASE WHEN id % 40 = 1 THEN NULL WHEN id % 40 = 2 THEN array() WHEN id % 40 = 3 THEN array(CAST(NULL AS STRING))
    WHEN id % 40 = 4 THEN array(concat('t', id), NULL) ELSE array(concat('t', id), concat('g', id DIV 20), 'all') END AS tags,
  IF(id % 30 = 5, NULL, array(CAST(id AS INT), CAST(-id AS INT))) AS numbers,
  IF(id % 25 = 6, NULL, map(concat('k', id), concat('v', id DIV 2), 'every', 'one')) AS attrs
FROM range(0, 400, 1, 10);

CREATE TABLE wanted USING parquet AS SELECT * FROM VALUES ('t57'), ('t358'), (NULL) AS w(tag);

CREATE SIEVE INDEX ON posts (tags, numbers, map_keys(attrs), map_values(attrs)) OPTIONS (budget = '16KB');

--@ queries

--! files = 1 of 10
SELECT id FROM posts WHERE array_contains(tags, 't57');

--! files = 1 of 10
SELECT id FROM posts WHERE array_contains(tags, 't84');

--! files = 0 of 10
SELECT id FROM posts WHERE array_contains(tags, 'nothing');

--! files = 10 of 10
SELECT count(*) FROM posts WHERE array_contains(tags, 'all');

--! files = 1 of 10
SELECT count(*) FROM posts WHERE array_contains(tags, 'g3');

--! files = 10 of 10
SELECT count(*) FROM posts WHERE NOT array_contains(tags, 't57');

--! files = 10 of 10
SELECT count(*) FROM posts WHERE array_contains(tags, 't57') IS NULL;

--! files = 10 of 10
SELECT count(*) FROM posts WHERE array_contains(tags, 't57') IS NOT TRUE;

--! files = 2 of 10
SELECT id FROM posts WHERE array_contains(tags, 't57') OR array_contains(tags, 't358');

--! files = 1 of 10
SELECT id FROM posts WHERE array_contains(tags, 't57') AND array_contains(tags, 'g2');

--! files = 1 of 10
SELECT id FROM posts WHERE array_contains(tags, 't57') AND NOT array_contains(tags, 't358');

--! files = 0 of 10
SELECT id FROM posts WHERE array_contains(tags, 't57') AND array_contains(tags, 't358');

--! files = 2 of 10
SELECT id FROM posts WHERE arrays_overlap(tags, array('t57', 't358', 'x'));

--! files = 1 of 10
SELECT id FROM posts WHERE arrays_overlap(array('t57', NULL), tags);

--! files = 10 of 10
SELECT count(*) FROM posts WHERE arrays_overlap(tags, array('t57', NULL)) IS NULL;

--! files = 1 of 10
SELECT id FROM posts WHERE exists(tags, t -> t = 't57');

--! files = 2 of 10
SELECT id FROM posts WHERE exists(tags, t -> t IN ('t57', 't358'));

--! files = 2 of 10
SELECT id FROM posts WHERE exists(tags, t -> t LIKE 't39%');

--! files = 10 of 10
SELECT count(*) FROM posts WHERE exists(tags, t -> t IS NULL);

--! files = 10 of 10
SELECT count(*) FROM posts WHERE exists(tags, t -> t <> 'all');

--! files = 10 of 10
SELECT count(*) FROM posts WHERE NOT exists(tags, t -> t = 't57');

--! files = 10 of 10
SELECT count(*) FROM posts WHERE forall(tags, t -> t = 't57');

--! files = 10 of 10
SELECT count(*) FROM posts WHERE size(tags) = 3;

--! files = 10 of 10
SELECT count(*) FROM posts WHERE tags IS NULL;

--! files = 10 of 10
SELECT count(*) FROM posts WHERE tags IS NOT NULL;

--! files = 1 of 10
SELECT id FROM posts WHERE array_contains(numbers, 57);

--! files = 10 of 10
SELECT id FROM posts WHERE array_contains(numbers, -57L);

--! files = 1 of 10
SELECT id FROM posts WHERE exists(numbers, n -> n > 396);

--! files = 1 of 10
SELECT id FROM posts WHERE exists(numbers, n -> n BETWEEN -58 AND -57);

--! files = 2 of 10
SELECT id FROM posts WHERE exists(numbers, n -> n = 57 OR n = 357);

--! files = 1 of 10
SELECT id FROM posts WHERE exists(numbers, n -> n > 10 AND n < 12);

--! files = 1 of 10
SELECT id FROM posts WHERE exists(numbers, n -> n + 1 = 58);

--! files = 1 of 10
SELECT id FROM posts WHERE exists(numbers, n -> n = id) AND id = 57;

--! files = 1 of 10
SELECT id FROM posts WHERE map_contains_key(attrs, 'k57');

--! files = 1 of 10
SELECT id FROM posts WHERE array_contains(map_keys(attrs), 'k58');

--! files = 10 of 10
SELECT count(*) FROM posts WHERE map_contains_key(attrs, 'every');

--! files = 10 of 10
SELECT count(*) FROM posts WHERE NOT map_contains_key(attrs, 'k57');

--! files = 1 of 10
SELECT id FROM posts WHERE array_contains(map_values(attrs), 'v28');

--! files = 1 of 10
SELECT id FROM posts WHERE exists(map_values(attrs), v -> v = 'v28') AND map_contains_key(attrs, 'k57');

--! files = 12 of 12
SELECT id, tag FROM posts JOIN wanted ON array_contains(tags, tag);

--! files = 10 of 10
SELECT id, t FROM posts LATERAL VIEW explode(tags) AS t WHERE t = 't57';
