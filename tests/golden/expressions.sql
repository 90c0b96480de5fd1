-- Indexes on expressions: functions of text, JSON, map values, arithmetic, casts and dates, and joins on expressions.
CREATE TABLE users USING parquet AS
SELECT id, CASE WHEN id % 50 = 7 THEN NULL WHEN id % 50 = 9 THEN '' ELSE concat('User', id, '@Example.org') END AS email,
  CASE WHEN id % 40 = 3 THEN 'no json' WHEN id % 40 = 5 THEN NULL ELSE concat('{"user":{"id":', id, ',"tags":["t', id % 9, '"]},"n":', IF(id % 7 = 0, 'null', string(-id)), '}') END AS payload,
  IF(id % 30 = 2, NULL, map('k', concat('v', id), 'n', CAST(NULL AS STRING))) AS attrs,
  CAST(IF(id % 20 = 4, NULL, id % 11) AS INT) AS a, CAST(id AS INT) AS b,
  timestamp_seconds(1700000000 + id * 3600) AS ts
FROM range(0, 400, 1, 10);

CREATE TABLE wanted USING parquet AS
SELECT * FROM VALUES ('user57@example.org', 57), ('user58@example.org', 58), ('user358@example.org', 358), (NULL, 0), ('', 1) AS w(mail, n);

CREATE SIEVE INDEX ON users (lower(email), length(email), (get_json_object(payload, '$.n')), (attrs['k']), (a * 1000 + b), (coalesce(attrs['n'], concat('w', id))), (hour(ts) * 1000 + b)) OPTIONS (budget = '16KB');

--@ queries

--! files = 1 of 10
SELECT id, email FROM users WHERE lower(email) = 'user56@example.org';

--! files = 1 of 10
SELECT id, email FROM users WHERE lower(email) = 'user207@example.org';

--! files = 0 of 10
SELECT id FROM users WHERE lower(email) = 'User58@Example.org';

--! files = 2 of 10
SELECT id FROM users WHERE lower(email) IN ('user58@example.org', 'user358@example.org', 'nobody');

--! files = 2 of 10
SELECT id FROM users WHERE lower(email) LIKE 'user39%';

--! files = 1 of 10
SELECT id FROM users WHERE lower(email) BETWEEN 'user398' AND 'user399@';

--! files = 8 of 10
SELECT count(*), min(id) FROM users WHERE lower(email) IS NULL;

--! files = 10 of 10
SELECT count(*) FROM users WHERE lower(email) IS NOT NULL;

--! files = 10 of 10
SELECT count(*) FROM users WHERE lower(email) <> 'user58@example.org';

--! files = 10 of 10
SELECT count(*) FROM users WHERE NOT (lower(email) = 'user58@example.org');

--! files = 8 of 10
SELECT count(*) FROM users WHERE lower(email) <=> NULL;

--! files = 1 of 10
SELECT id FROM users WHERE lower(email) <=> 'user58@example.org';

--! files = 2 of 10
SELECT id FROM users WHERE lower(email) = 'user58@example.org' OR lower(email) = 'user358@example.org';

--! files = 10 of 10
SELECT id FROM users WHERE lower(email) = 'user58@example.org' OR a IS NULL AND b = 24;

--! files = 0 of 10
SELECT id FROM users WHERE lower(email) = 'user58@example.org' AND lower(email) = 'user358@example.org';

--! files = 8 of 10
SELECT id FROM users WHERE length(email) = 0 AND b > 350;

--! files = 8 of 10
SELECT count(*) FROM users WHERE length(email) > 18;

--! files = 1 of 10
SELECT count(*) FROM users WHERE length(email) = 17;

--! files = 1 of 10
SELECT id FROM users WHERE get_json_object(payload, '$.n') = '-58';

--! files = 0 of 10
SELECT id FROM users WHERE get_json_object(payload, '$.n') = 'no json';

--! files = 10 of 10
SELECT count(*) FROM users WHERE get_json_object(payload, '$.n') IS NULL;

--! files = 2 of 10
SELECT id FROM users WHERE get_json_object(payload, '$.n') IN ('-58', '-358') AND id > 100;

--! files = 10 of 10
SELECT id FROM users WHERE get_json_object(payload, '$.user.id') = '58';

--! files = 1 of 10
SELECT id FROM users WHERE attrs['k'] = 'v58';

--! files = 1 of 10
SELECT id FROM users WHERE attrs.k = 'v58';

--! files = 1 of 10
SELECT id FROM users WHERE element_at(attrs, 'k') = 'v358';

--! files = 10 of 10
SELECT count(*) FROM users WHERE attrs['k'] IS NULL;

--! files = 10 of 10
SELECT id FROM users WHERE attrs['other'] = 'v58';

--! files = 1 of 10
SELECT id FROM users WHERE coalesce(attrs['n'], concat('w', id)) = 'w58';

--! files = 1 of 10
SELECT id FROM users WHERE a * 1000 + b = 3058;

--! files = 1 of 10
SELECT id FROM users WHERE a * 1000 + b BETWEEN 3050 AND 3060;

--! files = 1 of 10
SELECT id FROM users WHERE a * 1000 + b > 10390;

--! files = 10 of 10
SELECT count(*) FROM users WHERE a * 1000 + b IS NULL;

--! files = 10 of 10
SELECT id FROM users WHERE b + a * 1000 = 3058;

--! files = 1 of 10
SELECT id FROM users WHERE hour(ts) * 1000 + b = 8058;

--! files = 10 of 12
SELECT id, n FROM users JOIN wanted ON lower(email) = mail;

--! files = 4 of 12
SELECT id FROM users LEFT SEMI JOIN wanted ON lower(email) = mail AND n > 57;

--! files = 3 of 12
SELECT id FROM users WHERE lower(email) IN (SELECT mail FROM wanted WHERE n = 358);

--! files = 12 of 12
SELECT count(*) FROM users LEFT ANTI JOIN wanted ON lower(email) = mail;

--! files = 12 of 12
SELECT id, n FROM users RIGHT JOIN wanted ON lower(email) = mail;

--! files = 12 of 12
SELECT count(*), count(n) FROM users LEFT JOIN wanted ON lower(email) = mail;

--! files = 3 of 12
SELECT id FROM users WHERE lower(email) = (SELECT max(mail) FROM wanted);

--! files = 4 of 10
SELECT id FROM users WHERE lower(email) LIKE 'user1%' ORDER BY lower(email) LIMIT 3;

--! files = 10 of 10
SELECT id FROM users WHERE upper(email) = 'USER58@EXAMPLE.ORG';

--! files = 1 of 10
SELECT id FROM (SELECT id, lower(email) AS e FROM users) WHERE e = 'user58@example.org';

--! files = 2 of 20
WITH u AS (SELECT lower(email) AS e, id FROM users) SELECT u.id FROM u JOIN u AS v ON u.e = v.e WHERE u.e = 'user58@example.org';
