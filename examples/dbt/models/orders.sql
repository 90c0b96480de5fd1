{# Dropped and made again on each run: its indexes are created each time. #}
{{ config(
    materialized='table',
    indexes=[
      {'columns': ['id'], 'type': 'sieve', 'options': {'budget': '2%'}},
      {'columns': ['customer'], 'type': 'sieve', 'options': {'shape': 'map'}},
    ],
) }}

select /*+ repartition_by_range(20, arrived) */ id, concat('c-', xxhash64(id)) as customer, arrived
from (select id, if(id % 50 = 7, id + id * 7919 % 8000, id) as arrived from range(20000))
