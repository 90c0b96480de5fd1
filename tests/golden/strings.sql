-- Strings and binary: codes hold eight bytes after the common prefix, comparisons widen to match.
CREATE TABLE s USING parquet AS
SELECT id, CONCAT('customer#', LPAD(id, 6, '0')) AS k, CONCAT(CHR(CAST(97 + id DIV 4 AS INT)), REPEAT('x', CAST(id % 3 AS INT))) AS w,
  CASE id WHEN 0 THEN '' WHEN 25 THEN 'ünïcödé' WHEN 26 THEN '日本語' WHEN 27 THEN 'a%b_c\\d' WHEN 35 THEN NULL
    WHEN 45 THEN '😀 smile' WHEN 46 THEN ' leading' WHEN 47 THEN 'trailing ' WHEN 48 THEN 'tab\there' ELSE CONCAT('v', LPAD(id, 3, '0')) END AS t,
  CAST(CONCAT('key', LPAD(id, 3, '0')) AS BINARY) AS bin, unhex(CASE id WHEN 10 THEN 'FF' WHEN 20 THEN '' WHEN 30 THEN '00' WHEN 31 THEN '0000' WHEN 50 THEN 'FE01' ELSE CONCAT('7F', LPAD(hex(id), 2, '0')) END) AS raw,
  CAST(unhex(CASE id WHEN 10 THEN 'FF61' WHEN 20 THEN 'FE62' ELSE CONCAT('7A', LPAD(hex(id), 2, '0')) END) AS STRING) AS broken
FROM range(0, 60, 1, 6);

CREATE TABLE vc (id BIGINT, v VARCHAR(10)) USING parquet;

INSERT INTO vc SELECT id, CONCAT('v', LPAD(id, 3, '0')) FROM range(0, 60, 1, 6);

CREATE SIEVE INDEX ON s (k, w, t, bin, raw, broken) OPTIONS (error = 1);

CREATE SIEVE INDEX ON vc (v) OPTIONS (error = 1);

--@ queries

--! files = 1 of 6
SELECT id FROM s WHERE k = 'customer#000033';

--! files = 0 of 6
SELECT id FROM s WHERE k = 'customer#000099';

--! files = 0 of 6
SELECT id FROM s WHERE k = 'other';

--! files = 0 of 6
SELECT id FROM s WHERE k = '';

--! files <= 1 of 6
SELECT id FROM s WHERE k = 'Customer#000033';

--! files <= 2 of 6
SELECT id FROM s WHERE k LIKE 'customer#00003%';

--! files = 6 of 6
SELECT count(*) FROM s WHERE k LIKE 'cust%';

--! files <= 2 of 6
SELECT id FROM s WHERE k LIKE 'customer#00003_' AND id > 35;

SELECT id FROM s WHERE k LIKE '%33';

SELECT id FROM s WHERE k LIKE '%0033%';

SELECT id FROM s WHERE k LIKE 'customer#0000_3';

--! files <= 2 of 6
SELECT count(*) FROM s WHERE startswith(k, 'customer#00004');

SELECT count(*) FROM s WHERE endswith(k, '33');

SELECT count(*) FROM s WHERE contains(k, '0033');

SELECT id FROM s WHERE k RLIKE '^customer#000033$';

SELECT id FROM s WHERE k ILIKE 'CUSTOMER#000033';

SELECT count(*) FROM s WHERE k NOT LIKE 'customer#00003%';

SELECT count(*) FROM s WHERE NOT (k = 'customer#000033');

--! files <= 2 of 6
SELECT id FROM s WHERE k > 'customer#000056';

--! files <= 2 of 6
SELECT id FROM s WHERE k >= 'customer#000056x';

--! files <= 2 of 6
SELECT id FROM s WHERE k < 'customer#000003';

--! files <= 2 of 6
SELECT id FROM s WHERE k BETWEEN 'customer#000010' AND 'customer#000012';

--! files <= 3 of 6
SELECT id FROM s WHERE k IN ('customer#000001', 'customer#000033', 'x', '');

--! files <= 2 of 6
SELECT id, w FROM s WHERE w = 'c';

--! files <= 2 of 6
SELECT id, w FROM s WHERE w LIKE 'cx%';

--! files <= 2 of 6
SELECT id, w FROM s WHERE w > 'nx';

--! files <= 2 of 6
SELECT id, w FROM s WHERE w <= 'a';

SELECT id, w FROM s WHERE w = 'c ';

SELECT id, w FROM s WHERE trim(w) = 'c';

SELECT id, w FROM s WHERE upper(w) = 'C';

SELECT id, w FROM s WHERE substring(w, 1, 1) = 'c';

SELECT id, w FROM s WHERE length(w) = 3 AND w > 'm';

--! files <= 2 of 6
SELECT id, t FROM s WHERE t = '';

--! files <= 2 of 6
SELECT id, t FROM s WHERE t = 'ünïcödé';

--! files <= 2 of 6
SELECT id, t FROM s WHERE t LIKE 'ün%';

--! files <= 2 of 6
SELECT id, t FROM s WHERE t LIKE '日%';

--! files <= 2 of 6
SELECT id, t FROM s WHERE t LIKE '😀%';

SELECT id, t FROM s WHERE t LIKE 'a\\%b%';

SELECT id, t FROM s WHERE t LIKE 'a!%b!_c%' ESCAPE '!';

SELECT id, t FROM s WHERE t LIKE 'a%b_c%';

--! files <= 2 of 6
SELECT id FROM s WHERE t = ' leading';

--! files <= 2 of 6
SELECT id FROM s WHERE t = 'trailing ';

SELECT id FROM s WHERE t = 'trailing';

SELECT id FROM s WHERE t > '日';

SELECT count(*) FROM s WHERE t < 'v';

--! files <= 2 of 6
SELECT id FROM s WHERE t IS NULL;

--! files <= 2 of 6
SELECT id, hex(bin) FROM s WHERE bin = X'6B6579303333';

--! files <= 2 of 6
SELECT id FROM s WHERE bin = CAST('key033' AS BINARY);

--! files <= 2 of 6
SELECT id FROM s WHERE bin > CAST('key056' AS BINARY);

SELECT count(*) FROM s WHERE bin IN (X'6B6579303333', X'00');

--! files <= 2 of 6
SELECT id FROM s WHERE raw = X'FF';

--! files <= 2 of 6
SELECT id FROM s WHERE raw > X'80';

SELECT id FROM s WHERE raw = X'';

SELECT id FROM s WHERE raw = X'00';

SELECT id FROM s WHERE raw <= X'0000';

SELECT id FROM s WHERE raw < X'7F01';

SELECT id, hex(broken) FROM s WHERE broken LIKE CONCAT(CAST(X'FD' AS STRING), '%_');

SELECT id, hex(broken) FROM s WHERE broken LIKE '\uFFFD_';

SELECT id, hex(broken) FROM s WHERE broken > 'zzz';

--! files <= 2 of 6
SELECT id FROM s WHERE broken = CAST(X'FF61' AS STRING);

--! files <= 2 of 6
SELECT id, v FROM vc WHERE v = 'v033';

--! files <= 2 of 6
SELECT id, v FROM vc WHERE v LIKE 'v03%' AND v > 'v036';

--! files <= 2 of 6
SELECT id, v FROM vc WHERE v > 'v056';

SELECT count(*) FROM vc WHERE v IN ('v001', 'v002', 'much longer than ten');
