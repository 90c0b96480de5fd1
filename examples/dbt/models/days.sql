{# The first run writes two partitions, one per day. Each later run overwrites only the second partition. #}
{{ config(
    materialized='incremental',
    incremental_strategy='insert_overwrite',
    partition_by=['day'],
    indexes=[{'columns': ['visitor'], 'type': 'sieve', 'name': 'visitors'}],
) }}

select /*+ repartition_by_range(4, visitor) */ id, id * 31 % 10007 as visitor, day
from range(5000)
  cross join (values {% if is_incremental() %} (date '2026-01-02') {% else %} (date '2026-01-01'), (date '2026-01-02') {% endif %}) as days (day)
