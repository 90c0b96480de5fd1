{# Each run drops and recreates this table, so the hook creates the indexes in each run. #}
{{ config(
    materialized='table',
    indexes=[
      {'columns': ['id'], 'type': 'sieve', 'options': {'budget': '2%'}},
      {'columns': ['customer'], 'type': 'sieve', 'options': {'shape': 'map'}},
    ],
) }}

select /*+ repartition_by_range(20, arrived) */ id, concat('c-', xxhash64(id)) as customer, arrived
from (select id, if(id % 50 = 7, id + id * 7919 % 8000, id) as arrived from range(20000))
