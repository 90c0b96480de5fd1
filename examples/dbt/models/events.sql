{# The first run writes 10,000 rows, and each later run appends 1,000. The index's refresh reads only new files. #}
{{ config(
    materialized='incremental',
    incremental_strategy='append',
    indexes=[{'columns': ['id', 'kind'], 'type': 'sieve'}],
) }}

{% set first, rows = 0, 10000 %}
{% if is_incremental() %}
  {% set first, rows = run_query('select max(id) + 1 from ' ~ this).rows[0][0] | int, 1000 %}
{% endif %}
select /*+ repartition_by_range(4, id) */ id, id % 7 as kind from range({{ first }}, {{ first + rows }})
