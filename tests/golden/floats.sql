-- Floats: NaN equals NaN and is above all, -0.0 equals 0.0, infinities lie at the ends.
CREATE TABLE f USING parquet AS
SELECT id,
  CASE WHEN id = 35 THEN DOUBLE('NaN') WHEN id = 36 THEN DOUBLE('-Infinity') WHEN id = 37 THEN DOUBLE('Infinity')
       WHEN id = 15 THEN -0.0D WHEN id = 25 THEN 0.0D WHEN id = 45 THEN NULL ELSE (id - 30) * 1.5D END AS d,
  CAST(CASE WHEN id = 35 THEN DOUBLE('NaN') WHEN id = 36 THEN DOUBLE('-Infinity') WHEN id = 37 THEN DOUBLE('Infinity')
       WHEN id = 15 THEN -0.0D WHEN id = 25 THEN 0.0D WHEN id = 45 THEN NULL ELSE (id - 30) * 1.5D END AS FLOAT) AS f
FROM range(0, 60, 1, 6);

CREATE SIEVE INDEX ON f (d, f);

--@ queries

--! files = 1 of 6
SELECT id, d FROM f WHERE d = DOUBLE('NaN');

--! files = 1 of 6
SELECT id, f FROM f WHERE f = FLOAT('NaN');

--! files <= 3 of 6
SELECT id, d FROM f WHERE d = 0.0D;

--! files <= 3 of 6
SELECT id, d FROM f WHERE d = -0.0D;

--! files <= 3 of 6
SELECT id FROM f WHERE f = 0;

--! files <= 3 of 6
SELECT id FROM f WHERE f IN (CAST(-0.0 AS FLOAT), CAST(1000 AS FLOAT));

SELECT id FROM f WHERE d IN (-0.0D, 1D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 9D, 10D, 11D, 12D, 13D);

SELECT count(*) FROM f WHERE d NOT IN (0.0D, 1.5D);

SELECT count(*) FROM f WHERE d NOT IN (0.0D, 1D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 9D, 10D, 11D, 12D, 13D);

SELECT count(*) FROM f WHERE d NOT IN (DOUBLE('NaN'), 1.5D);

SELECT id FROM f WHERE d IN (DOUBLE('NaN'), 1.5D);

--! files = 1 of 6
SELECT id FROM f WHERE d = DOUBLE('Infinity');

--! files = 1 of 6
SELECT id FROM f WHERE d = DOUBLE('-Infinity');

-- NaN is greater than any other value.
--! files <= 2 of 6
SELECT id FROM f WHERE d > 42D;

--! files <= 2 of 6
SELECT id FROM f WHERE d >= DOUBLE('Infinity');

--! files = 1 of 6
SELECT id FROM f WHERE d > DOUBLE('Infinity');

--! files = 1 of 6
SELECT id FROM f WHERE d >= DOUBLE('NaN');

--! files = 0 of 6
SELECT id FROM f WHERE d > DOUBLE('NaN');

--! files = 6 of 6
SELECT count(*) FROM f WHERE d < DOUBLE('NaN');

--! files = 6 of 6
SELECT count(*) FROM f WHERE d <= DOUBLE('NaN');

--! files = 6 of 6
SELECT count(*) FROM f WHERE d != DOUBLE('NaN');

SELECT count(*) FROM f WHERE NOT (d < 42D);

SELECT count(*) FROM f WHERE NOT (d > -40D);

SELECT count(*) FROM f WHERE NOT (d >= -40D);

--! files = 1 of 6
SELECT id FROM f WHERE d IS NULL;

SELECT count(*) FROM f WHERE d IS NOT NULL;

--! files = 1 of 6
SELECT id FROM f WHERE d <=> NULL;

SELECT count(*) FROM f WHERE NOT (d <=> DOUBLE('NaN'));

--! files = 1 of 6
SELECT id FROM f WHERE d <=> DOUBLE('NaN');

SELECT id FROM f WHERE isnan(d);

SELECT count(*) FROM f WHERE NOT isnan(d);

SELECT id FROM f WHERE isnan(f) AND f IS NOT NULL;

--! files <= 3 of 6
SELECT id, d FROM f WHERE d < -42D;

--! files <= 2 of 6
SELECT id FROM f WHERE d BETWEEN 40 AND 41;

--! files <= 2 of 6
SELECT id FROM f WHERE f BETWEEN 40 AND 41;

--! files <= 2 of 6
SELECT id FROM f WHERE f BETWEEN 40D AND 41D;

SELECT id FROM f WHERE CAST(f AS DOUBLE) = DOUBLE('NaN');

SELECT id FROM f WHERE CAST(f AS DOUBLE) > 1e300D;

SELECT id FROM f WHERE f > 1e300D;

SELECT id FROM f WHERE f < -1e300D;

SELECT id FROM f WHERE f >= DOUBLE('Infinity');

SELECT id FROM f WHERE f = 1.5;

SELECT count(*) FROM f WHERE f < DOUBLE('NaN');

SELECT id FROM f WHERE d = 0 AND f = 0;

SELECT id FROM f WHERE d > 40 OR d IS NULL;

SELECT id FROM f WHERE -d = 0;

SELECT id FROM f WHERE abs(d) = DOUBLE('Infinity');

SELECT id FROM f WHERE nanvl(d, 7D) = 7D;

SELECT id FROM f WHERE coalesce(d, 7D) = 7D;
