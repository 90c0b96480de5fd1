-- NULLs and booleans: files all of NULL, files with some, files with none.
CREATE TABLE n USING parquet AS
SELECT id, CASE WHEN id < 10 THEN NULL WHEN id % 10 = 5 AND id < 30 THEN NULL ELSE id END AS v,
  CASE WHEN id < 20 THEN true WHEN id < 40 THEN false WHEN id = 45 THEN NULL ELSE id % 2 = 0 END AS flag,
  CASE WHEN id >= 50 THEN CONCAT('s', LPAD(id, 2, '0')) END AS s
FROM range(0, 60, 1, 6);

CREATE SIEVE INDEX ON n (v, flag, s);

--@ queries

--! files = 3 of 6
SELECT id FROM n WHERE v IS NULL;

--! files = 5 of 6
SELECT count(*) FROM n WHERE v IS NOT NULL;

--! files = 3 of 6
SELECT count(*) FROM n WHERE NOT (v IS NOT NULL);

--! files = 3 of 6
SELECT count(*) FROM n WHERE isnull(v);

--! files = 3 of 6
SELECT count(*) FROM n WHERE v <=> NULL;

--! files = 5 of 6
SELECT count(*) FROM n WHERE NOT (v <=> NULL);

--! files = 0 of 0
SELECT count(*) FROM n WHERE v = NULL;

--! files = 0 of 0
SELECT count(*) FROM n WHERE v != NULL;

--! files = 0 of 0
SELECT count(*) FROM n WHERE v IN (NULL);

--! files = 0 of 0
SELECT count(*) FROM n WHERE v > NULL;

SELECT id FROM n WHERE v = 15 OR v IS NULL;

--! files <= 2 of 6
SELECT id FROM n WHERE v = 16;

--! files <= 2 of 6
SELECT id FROM n WHERE v <=> 16;

--! files = 6 of 6
SELECT count(*) FROM n WHERE NOT (v <=> 16);

--! files = 5 of 6
SELECT count(*) FROM n WHERE v != 16;

SELECT count(*) FROM n WHERE NOT (v = 16);

SELECT count(*) FROM n WHERE NOT (v IN (16, 17));

SELECT count(*) FROM n WHERE coalesce(v, -1) = -1;

SELECT count(*) FROM n WHERE nvl(v, 16) = 16;

SELECT count(*) FROM n WHERE ifnull(v, id) = id;

--! files = 1 of 6
SELECT id FROM n WHERE v < 13 AND s IS NULL;

--! files = 0 of 6
SELECT id FROM n WHERE v < 13 AND s IS NOT NULL;

--! files = 1 of 6
SELECT count(*) FROM n WHERE s IS NOT NULL;

--! files = 5 of 6
SELECT count(*) FROM n WHERE s IS NULL;

--! files = 4 of 6
SELECT count(*) FROM n WHERE flag;

--! files = 4 of 6
SELECT count(*) FROM n WHERE flag = true;

--! files = 4 of 6
SELECT count(*) FROM n WHERE NOT flag;

--! files = 4 of 6
SELECT count(*) FROM n WHERE flag = false;

--! files = 4 of 6
SELECT count(*) FROM n WHERE flag IS TRUE;

SELECT count(*) FROM n WHERE flag IS NOT TRUE;

SELECT count(*) FROM n WHERE flag IS FALSE;

SELECT count(*) FROM n WHERE flag IS NOT FALSE;

--! files = 1 of 6
SELECT id FROM n WHERE flag IS UNKNOWN;

SELECT count(*) FROM n WHERE flag IS NOT UNKNOWN;

SELECT count(*) FROM n WHERE flag != true;

SELECT count(*) FROM n WHERE flag > false;

SELECT count(*) FROM n WHERE flag < true;

SELECT count(*) FROM n WHERE flag >= false;

SELECT count(*) FROM n WHERE flag IN (true, false);

SELECT count(*) FROM n WHERE flag IN (true, NULL);

SELECT count(*) FROM n WHERE flag NOT IN (true, NULL);

SELECT count(*) FROM n WHERE flag OR v = 35;

SELECT count(*) FROM n WHERE NOT (flag OR v = 35);

SELECT count(*) FROM n WHERE NOT (flag AND v = 45);

--! files = 0 of 0
SELECT count(*) FROM n WHERE flag AND NOT flag AND v = 1;

SELECT count(*) FROM n WHERE flag = flag;

SELECT count(*) FROM n WHERE v = v;

SELECT count(*) FROM n WHERE v <=> v;

SELECT count(*) FROM n WHERE flag <=> NULL OR s = 's55';

SELECT count(*) FROM n WHERE true;

SELECT count(*) FROM n WHERE false;

SELECT count(*) FROM n WHERE CAST(NULL AS BOOLEAN);

SELECT id FROM n WHERE if(v IS NULL, id = 5, v = 16);

SELECT id FROM n WHERE CASE WHEN v = 16 THEN true WHEN v = 17 THEN NULL ELSE false END;

SELECT count(*) FROM n WHERE v NOT IN (SELECT v FROM n WHERE v IS NOT NULL);

SELECT count(*) FROM n WHERE v NOT IN (SELECT v FROM n);

SELECT count(v), count(*), count(s) FROM n WHERE v IS NULL OR v > 55;

SELECT v, count(*) FROM n WHERE v IS NULL GROUP BY v;
