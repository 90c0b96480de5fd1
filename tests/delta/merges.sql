-- What test_delta_merge.py runs, in this order; {t} is the table.

MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = concat(t.v, s.v);

MERGE INTO {t} t USING s ON t.id = s.id
  WHEN MATCHED AND s.id < 43 THEN UPDATE SET v = 'u1'
  WHEN MATCHED AND t.v = 'am' THEN UPDATE SET v = 'u2', d = s.d + 1
  WHEN MATCHED THEN DELETE;

MERGE INTO {t} t USING s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET *
  WHEN NOT MATCHED THEN INSERT *;

MERGE INTO {t} t USING s ON t.id = s.id AND t.id > 43
  WHEN MATCHED THEN UPDATE SET v = 'u3'
  WHEN NOT MATCHED AND s.id > 500 THEN INSERT (id, v) VALUES (s.id + 100, 'i1');

MERGE INTO {t} t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;

MERGE INTO {t} t USING s ON t.id = s.id + 10
  WHEN NOT MATCHED AND s.p = 2 THEN INSERT (id, k, d, p, v) VALUES (s.id + 10, s.k, s.d, s.p, 'i2')
  WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id + 700, 'i3');

-- A row of the target with two of the source.
MERGE INTO {t} t USING twice s ON t.id = s.id WHEN MATCHED THEN DELETE;

MERGE INTO {t} t USING twice s ON t.id = s.id + 10
  WHEN MATCHED THEN DELETE
  WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id + 10, s.v);

MERGE INTO {t} t USING twice s ON t.id = s.id AND s.v = 'w3'
  WHEN MATCHED THEN UPDATE SET v = s.v
  WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v);

-- NULL is equal to nothing, but for <=>.
MERGE INTO {t} t USING nulls s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET v = s.v
  WHEN NOT MATCHED THEN INSERT (id, k, v) VALUES (s.id, 'n', s.v);

MERGE INTO {t} t USING (SELECT * FROM nulls WHERE v > 'n2') s ON t.id <=> s.id
  WHEN MATCHED AND t.v <> 'nan' THEN UPDATE SET v = s.v;

MERGE INTO {t} t USING odd s ON t.d = s.d
  WHEN MATCHED THEN UPDATE SET v = s.v
  WHEN NOT MATCHED THEN INSERT (d, v) VALUES (s.d, s.v);

-- Keys of other types, and of functions.
MERGE INTO {t} t USING few s ON t.id = s.i WHEN MATCHED THEN UPDATE SET v = 'c1';

MERGE INTO {t} t USING few s ON t.id = CAST(s.t AS BIGINT)
  WHEN MATCHED THEN UPDATE SET v = 'c2'
  WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.i, 'c');

MERGE INTO {t} t USING few s ON CAST(t.id AS STRING) = s.t
  WHEN MATCHED AND t.id = 5 THEN UPDATE SET v = 'c3';

MERGE INTO {t} t USING few s ON t.id = s.e WHEN MATCHED THEN UPDATE SET v = 'c4';

MERGE INTO {t} t USING few s ON t.id = s.f WHEN MATCHED THEN UPDATE SET v = 'c5';

MERGE INTO {t} t USING few s ON upper(t.k) = s.u WHEN MATCHED THEN UPDATE SET v = 'c6';

MERGE INTO {t} t USING few s ON t.id + 1 = s.id WHEN MATCHED THEN UPDATE SET v = 'c7';

MERGE INTO {t} t USING few s ON t.id = s.id OR t.k = s.u
  WHEN MATCHED THEN UPDATE SET v = 'c8'
  WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'c');

-- Several keys, some of them of a partition.
MERGE INTO {t} t USING s ON t.id = s.id AND t.k = s.k AND t.p = s.p
  WHEN MATCHED THEN UPDATE SET v = 'e1'
  WHEN NOT MATCHED THEN INSERT *;

MERGE INTO {t} t USING s ON t.p = s.p AND t.d = s.d AND t.v <> s.v
  WHEN MATCHED THEN UPDATE SET p = t.p + 10, v = 'e2';

-- The source is the target, a part of it, or joined with it.
MERGE INTO {t} t USING {t} s ON t.id = s.id AND s.id < 9
  WHEN MATCHED THEN UPDATE SET v = concat(s.v, 't1');

MERGE INTO {t} t USING (SELECT id + 60 AS id, v FROM {t} WHERE id IN (1, 2)) s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET v = concat(s.v, 't2')
  WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v);

MERGE INTO {t} t USING (SELECT DISTINCT a.id, s.v FROM {t} a JOIN s ON a.id = s.id) s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET v = 't3'
  WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id);

MERGE INTO {t} t USING (SELECT id FROM s WHERE id <= (SELECT max(id) - 400 FROM s)) s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET v = 't4';

-- Sources that may give other rows each time, or none.
MERGE INTO {t} t USING (SELECT id, rand() r FROM s) s ON t.id = s.id AND s.r < 2
  WHEN MATCHED THEN UPDATE SET v = 'r1'
  WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'r2');

MERGE INTO {t} t USING (
    SELECT id + CAST(floor(rand() * 0.9) AS BIGINT) AS id FROM s WHERE id < 50
  ) s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET v = 'r3';

MERGE INTO {t} t USING (SELECT * FROM s ORDER BY id LIMIT 2) s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET v = 'r4';

MERGE INTO {t} t USING none s ON t.id = s.id
  WHEN MATCHED THEN DELETE
  WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v);

-- Rows without a match; without vectors, all files become one.
MERGE INTO {t} t USING s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET v = 'u4'
  WHEN NOT MATCHED BY SOURCE AND t.id BETWEEN 18 AND 22 THEN UPDATE SET v = 'b1';

MERGE INTO {t} t USING s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET v = 'u5'
  WHEN NOT MATCHED THEN INSERT *
  WHEN NOT MATCHED BY SOURCE AND t.id = 33 THEN DELETE
  WHEN NOT MATCHED BY SOURCE AND t.id < 12 THEN UPDATE SET v = 'b2', p = 1;

MERGE INTO {t} t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id = 34 THEN DELETE;

MERGE INTO {t} t USING none s ON t.id = s.id
  WHEN NOT MATCHED BY SOURCE AND t.id = 36 THEN DELETE;
