-- Decimals: up to 18 digits codes are exact, beyond they are monotone.
CREATE TABLE dec USING parquet AS
SELECT id, CAST((id - 30) / 100.0 AS DECIMAL(9,2)) AS small, CAST((id - 30) * 1.25 AS DECIMAL(18,4)) AS mid,
  CAST(CAST(id - 30 AS DECIMAL(38,0)) * 1000000000000000000000000000000 + id AS DECIMAL(38,0)) AS huge,
  CAST(CAST((id - 30) AS DECIMAL(20,0)) / 8 AS DECIMAL(30,10)) AS fine
FROM range(0, 60, 1, 6);

CREATE SIEVE INDEX ON dec (small, mid, huge, fine) OPTIONS (error = 1);

--@ queries

--! files = 1 of 6
SELECT id, small FROM dec WHERE small = 0.05;

--! files = 1 of 6
SELECT id, small FROM dec WHERE small = -0.30;

--! files = 0 of 0
SELECT id, small FROM dec WHERE small = 0.055;

--! files = 0 of 6
SELECT id, small FROM dec WHERE small = 9999999.99;

--! files = 0 of 6
SELECT id, small FROM dec WHERE small = 99999999999.99;

--! files <= 2 of 6
SELECT id, small FROM dec WHERE small < -0.275;

--! files <= 2 of 6
SELECT id, small FROM dec WHERE small <= -0.275;

--! files <= 2 of 6
SELECT id, small FROM dec WHERE small > 0.265;

--! files = 6 of 6
SELECT count(*) FROM dec WHERE small < 99999999999.99;

--! files <= 3 of 6
SELECT id, small FROM dec WHERE small BETWEEN -0.02 AND 0.02;

--! files = 2 of 6
SELECT id FROM dec WHERE small IN (-0.25, 0.25);

SELECT id FROM dec WHERE small IN (-0.25, 0.255, 1);

--! files <= 2 of 6
SELECT id, mid FROM dec WHERE mid = 6.25;

--! files <= 2 of 6
SELECT id, mid FROM dec WHERE mid = 6.2500;

--! files = 0 of 0
SELECT id, mid FROM dec WHERE mid = 6.25001;

--! files <= 2 of 6
SELECT id, mid FROM dec WHERE mid > 35;

--! files <= 2 of 6
SELECT id, mid FROM dec WHERE mid < -35.5D;

--! files <= 2 of 6
SELECT id FROM dec WHERE huge = 5000000000000000000000000000035;

--! files <= 2 of 6
SELECT id FROM dec WHERE huge = -30000000000000000000000000000000;

SELECT id FROM dec WHERE huge = 5000000000000000000000000000036;

--! files <= 2 of 6
SELECT id FROM dec WHERE huge > 27000000000000000000000000000000;

--! files <= 2 of 6
SELECT id FROM dec WHERE huge < -27000000000000000000000000000000;

SELECT count(*) FROM dec WHERE huge != 5000000000000000000000000000035;

SELECT count(*) FROM dec WHERE NOT (huge <= 5000000000000000000000000000035);

SELECT count(*) FROM dec WHERE huge NOT IN (5000000000000000000000000000035, 1);

--! files <= 2 of 6
SELECT id, fine FROM dec WHERE fine = 0.625;

SELECT id, fine FROM dec WHERE fine = 0.6250000001;

--! files <= 2 of 6
SELECT id, fine FROM dec WHERE fine >= 3.5;

SELECT id FROM dec WHERE fine = 1;

SELECT id FROM dec WHERE fine IN (0, 1, 2, 3);

SELECT id FROM dec WHERE fine < -3.6 OR small > 0.28;

SELECT id FROM dec WHERE small = mid;

SELECT id FROM dec WHERE small * 100 = 5;

SELECT id FROM dec WHERE round(mid) = 6;

SELECT id FROM dec WHERE CAST(small AS DECIMAL(20,5)) = 0.05;

SELECT id FROM dec WHERE CAST(small AS DECIMAL(9,1)) = 0.1;

SELECT id FROM dec WHERE CAST(small AS DOUBLE) = 0.05D;

SELECT count(*) FROM dec WHERE CAST(small AS DOUBLE) > 0.2D;

SELECT sum(small), sum(mid) FROM dec WHERE small >= 0.20;
