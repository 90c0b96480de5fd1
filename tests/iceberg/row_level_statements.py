"""DELETE, UPDATE and MERGE statements in the forms that Iceberg's own Spark tests cover.

`{t}` has the columns id, dep, salary and address; address is a struct of city and zip. `s` is a
source with the columns id, dep, salary and extra. Ids of `s` repeat and can be NULL. `one` has the
same columns as `s`, and contains each id once.
"""

from __future__ import annotations

DELETES = (
    "id = 4242",
    "true",
    "false",
    "id <= 13",
    "dep = 'd3'",
    "dep = 'd3' AND id > 30",
    "id = 7 OR dep = 'd5'",
    "id = NULL",
    "id IN (NULL)",
    "id NOT IN (NULL, 1)",
    "id <=> NULL",
    "dep IS NULL",
    "id IN (3, NULL, 77)",
    "id NOT IN (SELECT id FROM one WHERE id IS NOT NULL)",
    "id NOT IN (SELECT id FROM s)",
    "id IN (SELECT id FROM s)",
    "id IN (SELECT id + 1 FROM s WHERE salary > 20)",
    "(id, dep) IN (SELECT id, dep FROM s)",
    "EXISTS (SELECT 1 FROM s WHERE s.id = {t}.id)",
    "NOT EXISTS (SELECT 1 FROM s WHERE s.id = {t}.id + 5)",
    "EXISTS (SELECT 1 FROM s WHERE s.id = {t}.id AND s.salary < 30) AND dep <> 'd1'",
    "id <= (SELECT min(id) FROM s) + 2",
    "id = (SELECT max(id) FROM {t} WHERE salary < 50)",
    "address.city = 'c4'",
    "address.zip BETWEEN 40 AND 44 OR address IS NULL",
    "id % 10 = 3 AND salary IS NOT NULL",
    "upper(dep) = 'D2'",
    "salary > 100 AND id IN (SELECT id FROM {t} WHERE dep = 'd1')",
)
UPDATES = (
    "salary = -1 WHERE id = 42",
    "salary = -1 WHERE id = 4242",
    "salary = salary + 1",
    "id = -1, dep = NULL WHERE dep IN ('d1', 'd4') AND id < 30",
    "dep = 'x' WHERE id IS NULL OR salary IS NULL",
    "dep = 'x' WHERE id NOT IN (1, NULL)",
    "salary = id WHERE salary IN (SELECT salary FROM s)",
    "salary = (SELECT max(salary) FROM s) WHERE id IN (SELECT id FROM one)",
    "id = id + 1 WHERE (id, dep) IN (SELECT id, dep FROM s)",
    "dep = 'x' WHERE EXISTS (SELECT 1 FROM s WHERE s.id = {t}.id)",
    "dep = 'x' WHERE NOT EXISTS (SELECT 1 FROM one WHERE one.id = {t}.id) AND id > 60",
    "dep = 'x' WHERE id NOT IN (SELECT id FROM s WHERE id IS NOT NULL)",
    "id = 500 WHERE id = (SELECT min(id) FROM {t})",
    "address.city = 'x' WHERE address.zip = 41",
    "address = NULL WHERE address.city = 'c5'",
    "address = named_struct('city', dep, 'zip', 1) WHERE salary < 10",
    "dep = 'd9' WHERE dep = 'd2'",
    "id = '77' WHERE id = 76",
    "id = id, dep = dep WHERE id > 110",
)
MERGES = (
    "one s ON t.id = s.id WHEN MATCHED THEN UPDATE SET salary = s.salary",
    "one s ON t.id = s.id WHEN MATCHED THEN DELETE",
    (
        "one s ON t.id = s.id WHEN MATCHED AND t.dep = 'd3' THEN DELETE "
        "WHEN MATCHED AND s.salary > 20 THEN UPDATE SET t.dep = s.dep, salary = t.salary + 1 "
        "WHEN NOT MATCHED AND s.salary > 10 THEN INSERT (id, dep, salary, address) "
        "VALUES (s.id, s.dep, s.salary, NULL)"
    ),
    "one s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (dep, id) VALUES (s.extra, s.id)",
    (
        "one s ON t.id <=> s.id WHEN MATCHED THEN UPDATE SET dep = 'm' "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    ),
    "one s ON t.id = s.id AND t.dep = s.dep WHEN MATCHED THEN UPDATE SET dep = 'm'",
    "one s ON t.id = s.id AND t.id < 30 AND s.salary > 5 WHEN MATCHED THEN DELETE",
    (
        "one s ON t.id = s.id AND NULL WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    ),
    "one s ON t.id = s.id WHEN MATCHED AND NULL THEN DELETE WHEN MATCHED THEN UPDATE SET dep = 'm'",
    "one s ON false WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    "s ON t.id = s.id WHEN MATCHED THEN UPDATE SET dep = 'm'",
    "s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "s ON t.id = s.id WHEN MATCHED AND s.extra = 'e1' THEN UPDATE SET dep = 'm'",
    "s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, salary) VALUES (s.id, s.salary)",
    "(SELECT * FROM one WHERE id > 1000) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    (
        "(SELECT id FROM one UNION ALL SELECT id + 40 FROM one WHERE id < 5) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET dep = 'm'"
    ),
    (
        "(WITH c AS (SELECT max(id) id FROM one) SELECT * FROM c) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    ),
    "{t} s ON t.id = s.id AND s.salary < 20 WHEN MATCHED THEN UPDATE SET dep = 'self'",
    "(SELECT max(id) id FROM {t}) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "one s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.address.city = s.extra",
    "one s ON t.address.zip = s.id WHEN MATCHED THEN UPDATE SET address = NULL",
    "one s ON t.salary = s.salary WHEN MATCHED AND t.id > 60 THEN DELETE",
    "one s ON t.dep = s.dep AND t.id = s.id + 1 WHEN MATCHED THEN UPDATE SET id = t.id * 10",
    "one s ON t.id > s.id AND t.id < s.id + 2 AND s.id < 10 WHEN MATCHED THEN DELETE",
    "one s ON t.id = s.id WHEN MATCHED AND s.id IN (SELECT id FROM s) THEN DELETE",
    (
        "one s ON t.id = s.id WHEN MATCHED THEN UPDATE SET dep = 'm' "
        "WHEN NOT MATCHED BY SOURCE AND t.id < 20 THEN DELETE"
    ),
    (
        "one s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.dep = 'd4' THEN UPDATE SET id = 0 "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 63 THEN DELETE"
    ),
    (
        "one s ON t.id = s.id WHEN MATCHED AND t.salary > 3 THEN UPDATE SET dep = 'm' "
        "WHEN NOT MATCHED AND s.salary < 30 THEN INSERT (id, dep) VALUES (s.id, 'first') "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) "
        "WHEN NOT MATCHED BY SOURCE AND t.id > 90 THEN DELETE"
    ),
    (
        "(SELECT id, dep, salary, NULL address FROM one) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ),
    (
        "(SELECT cast(id AS INT) ID, dep FROM one) S ON t.Id = s.iD "
        "WHEN MATCHED THEN UPDATE SET DEP = s.dep"
    ),
)
STATEMENTS = (
    *(f"DELETE FROM {{t}} WHERE {condition}" for condition in DELETES),
    *(f"UPDATE {{t}} SET {change}" for change in UPDATES),
    *(f"MERGE INTO {{t}} t USING {merge}" for merge in MERGES),
    "DELETE FROM {t} AS x WHERE x.id = 42",
    "UPDATE {t} AS x SET x.salary = -1 WHERE x.id = 42",
    "DELETE FROM {t}",
)
