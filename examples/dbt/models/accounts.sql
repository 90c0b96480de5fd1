{# Each run updates 100 accounts and adds 100 others. The index's refresh reads only the changed file groups. #}
{{ config(
    enabled=target.name == 'hudi',
    materialized='incremental',
    file_format='hudi',
    incremental_strategy='merge',
    unique_key='id',
    partition_by=['region'],
    options={'type': 'cow'},
    indexes=[{'columns': ['card'], 'type': 'sieve'}],
) }}

{% set first, rows, turn = 0, 4000, 0 %}
{% if is_incremental() %}
  {% set first, turn = run_query('select max(id) - 99, max(turn) + 1 from ' ~ this).rows[0] | map('int') %}
  {% set rows = 200 %}
{% endif %}
select id, (id + {{ turn }}) * 7919 % 100003 as card, {{ turn }} as turn, cast(id div 500 as int) as region
from range({{ first }}, {{ first + rows }})
