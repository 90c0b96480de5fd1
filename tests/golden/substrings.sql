-- Indexes on substrings: patterns, functions of positions, characters of several bytes, escapes, NOT and NULL.
CREATE TABLE lines USING parquet AS
SELECT id, CASE WHEN id % 50 = 1 THEN NULL WHEN id % 50 = 2 THEN '' WHEN id % 50 = 3 THEN 'abc'
  ELSE concat('2026-01-', lpad(id DIV 40 + 1, 2, '0'), ' GET /item/', lpad(id, 5, '0'), ' Über_', chr(65 + id DIV 40), '% 😀', substr('äößçéñøåæü', 1 + id DIV 40, 1), 'x ', IF(id % 100 = 77, 'ERROR code', 'ok')) END AS line
FROM range(0, 400, 1, 10);

CREATE TABLE wanted USING parquet AS SELECT * FROM VALUES ('/item/00057'), ('/item/00358') AS w(part);

CREATE SIEVE INDEX ON lines (line, lower(line)) OPTIONS (kind = 'substring');

--@ queries

--! files = 1 of 10
SELECT id FROM lines WHERE line LIKE '%item/00057%';

--! files = 0 of 10
SELECT id FROM lines WHERE line LIKE '%item/00400%';

--! files = 1 of 10
SELECT id FROM lines WHERE line LIKE '%item_00057%';

--! files = 10 of 10
SELECT id FROM lines WHERE line LIKE '%item/00_57%';

--! files = 2 of 10
SELECT id FROM lines WHERE line LIKE '%0005%';

--! files = 10 of 10
SELECT count(*) FROM lines WHERE line LIKE '%057%';

--! files = 4 of 10
SELECT count(*) FROM lines WHERE line LIKE '%ERROR%';

--! files = 10 of 10
SELECT count(*) FROM lines WHERE line LIKE '%GET /item%';

--! files = 10 of 10
SELECT count(*) FROM lines WHERE line LIKE '%abc%';

--! files = 10 of 10
SELECT count(*) FROM lines WHERE line LIKE '';

--! files = 10 of 10
SELECT count(*) FROM lines WHERE line LIKE '%';

--! files = 1 of 10
SELECT id FROM lines WHERE line LIKE '2026-01-02%00057%';

--! files = 1 of 10
SELECT count(*) FROM lines WHERE line LIKE '2026-01-02%';

--! files = 4 of 10
SELECT count(*) FROM lines WHERE line LIKE '%ERROR code';

--! files = 1 of 10
SELECT id FROM lines WHERE line LIKE '%/00057%ok';

--! files = 1 of 10
SELECT id FROM lines WHERE line LIKE '%/00057%ERROR%';

--! files = 1 of 10
SELECT id FROM lines WHERE line LIKE '%/00077%ERROR%';

--! files = 1 of 10
SELECT id FROM lines WHERE line LIKE '%/00077%ok';

--! files = 1 of 10
SELECT count(*) FROM lines WHERE line LIKE '%Über\\_B\\%%';

--! files = 1 of 10
SELECT count(*) FROM lines WHERE line LIKE '%Über!_B!%%' ESCAPE '!';

--! files = 10 of 10
SELECT count(*) FROM lines WHERE line LIKE '%Über_B%';

--! files <= 8 of 10
SELECT count(*) FROM lines WHERE line LIKE '%😀ö%';

--! files = 10 of 10
SELECT count(*) FROM lines WHERE line LIKE '%😀%';

--! files = 10 of 10
SELECT count(*) FROM lines WHERE line LIKE '%_öx%';

--! files = 1 of 10
SELECT count(*) FROM lines WHERE line LIKE '%öx o%';

--! files = 1 of 10
SELECT id FROM lines WHERE contains(line, 'm/00057');

--! files = 1 of 10
SELECT id FROM lines WHERE instr(line, 'm/00057') > 0;

--! files = 10 of 10
SELECT count(*) FROM lines WHERE instr(line, 'm/00057') = 0;

--! files = 1 of 10
SELECT id FROM lines WHERE instr(line, '/00057') = 20;

--! files = 1 of 10
SELECT id FROM lines WHERE locate('m/00057', line, 3) > 0;

--! files = 1 of 10
SELECT id FROM lines WHERE position('m/00057' IN line) <> 0;

--! files = 1 of 10
SELECT id FROM lines WHERE line ILIKE '%ITEM/00057%';

--! files = 4 of 10
SELECT count(*) FROM lines WHERE line ILIKE '%error CODE';

--! files = 1 of 10
SELECT id FROM lines WHERE lower(line) LIKE '%item/00057%über%';

--! files = 10 of 10
SELECT id FROM lines WHERE upper(line) LIKE '%ITEM/00057%';

--! files = 10 of 10
SELECT count(*) FROM lines WHERE line NOT LIKE '%item/00057%';

--! files = 10 of 10
SELECT count(*) FROM lines WHERE NOT (line LIKE '%nothing%');

--! files = 10 of 10
SELECT count(*) FROM lines WHERE (line LIKE '%item/00057%') IS NULL;

--! files = 10 of 10
SELECT count(*) FROM lines WHERE (line LIKE '%item/00057%') IS NOT TRUE;

--! files = 2 of 10
SELECT id FROM lines WHERE line LIKE '%/00057%' OR line LIKE '%/00358%';

--! files = 10 of 10
SELECT id FROM lines WHERE line LIKE '%/00057%' OR id = 358;

--! files = 0 of 10
SELECT id FROM lines WHERE line LIKE '%/00057%' AND line LIKE '%/00358%';

--! files = 2 of 10
SELECT id FROM lines WHERE line LIKE ANY ('%/00057%', '%/00358%');

--! files = 1 of 10
SELECT id FROM lines WHERE line LIKE ALL ('%/00057%', '%ok%');

--! files = 1 of 10
SELECT id FROM lines WHERE startswith(line, '2026-01-10') AND endswith(line, 'ERROR code');

--! files = 10 of 10
SELECT id FROM lines WHERE line RLIKE '/00057 ';

--! files = 1 of 10
SELECT id FROM lines WHERE line = '2026-01-02 GET /item/00057 Über_B% 😀öx ok';

--! files = 12 of 12
SELECT id, part FROM lines JOIN wanted ON contains(line, part);

--! files = 10 of 10
SELECT count(*) FROM lines WHERE line IS NULL;
