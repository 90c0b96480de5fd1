{#
  Post-hook: creates, refreshes and drops Sieve indexes, so that a model's table has the indexes in the model's config.

      config(indexes=[{'columns': ['id'], 'type': 'sieve', 'options': {'budget': '2%'}}])

  If an index of the config is missing, or has other options than in the config, the hook creates it. The hook
  refreshes all other indexes of the config. It drops an index that an earlier run created if the config no longer
  lists the index. It never drops an index that dbt did not create. It ignores entries of other types than `sieve`,
  which are for other databases. Each column of an entry gets its own index, named <column>_sieve unless the entry
  contains a `name`. This macro is a hook, because dbt-spark's materializations never call dbt's own create_indexes.
#}
{% macro apply_indexes() %}
  {%- if execute and config.get('materialized') not in ['view', 'ephemeral'] -%}
    {%- set wanted = sieve.wanted_indexes(config.get('indexes', config.get('meta', {}).get('indexes')) or []) -%}
    {%- set present = sieve.present_indexes(this) -%}
    {%- for name, index in present.items() if name not in wanted and index.by_dbt -%}
      {%- do sieve.procedure('drop', {'table': this | string, 'index': name}) -%}
    {%- endfor -%}
    {%- for name, index in wanted.items() -%}
      {%- if name in present and present[name].comment == index.comment -%}
        {%- do sieve.procedure('refresh', {'table': this | string, 'index': name}) -%}
      {%- else -%}
        {%- set arguments = {
          'table': this | string, 'columns': index.column, 'index': name, 'comment': index.comment, 'replace': true
        } -%}
        {%- do arguments.update(index.options) -%}
        {%- do sieve.procedure('create', arguments) -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}


{# A config's indexes, by name. Each index's comment contains its column and options, which later runs compare. #}
{% macro wanted_indexes(entries) %}
  {%- set wanted = {} -%}
  {%- for entry in entries if entry.get('type') == 'sieve' -%}
    {%- set unknown = entry.keys() | reject('in', ['columns', 'type', 'options', 'name']) | list -%}
    {%- if unknown or not entry.get('columns') or entry.columns is string -%}
      {{ exceptions.raise_compiler_error(
        "An index of type sieve has columns (a list), options and a name, not: " ~ entry
      ) }}
    {%- endif -%}
    {%- if entry.get('name') and entry.columns | length > 1 -%}
      {{ exceptions.raise_compiler_error("Only an index of one column can have a name: " ~ entry) }}
    {%- endif -%}
    {%- for column in entry.columns -%}
      {#- Sieve converts index names to lower case, so this macro does, too. -#}
      {%- set name = (entry.get('name') or (column | replace('`', '') | replace('.', '_')) ~ '_sieve') | lower -%}
      {%- set options = entry.get('options') or {} -%}
      {%- set comment = sieve.by_dbt() ~ tojson({'column': column, 'options': options}, sort_keys=true) -%}
      {%- do wanted.update({name: {'column': column, 'options': options, 'comment': comment}}) -%}
    {%- endfor -%}
  {%- endfor -%}
  {{ return(wanted) }}
{% endmacro %}


{# The Sieve indexes of a table, by name. For each: its comment, and whether dbt created it. #}
{% macro present_indexes(relation) %}
  {%- set present = {} -%}
  {%- for row in sieve.procedure('show_indexes', {'table': relation | string}) -%}
    {%- set facts = sieve.procedure('describe', {'table': relation | string, 'index': row['index']}) -%}
    {%- set comments = facts.rows | selectattr('property', 'equalto', 'comment') | map(attribute='value') | list -%}
    {%- set comment = comments | first | default('') -%}
    {%- do present.update({row['index']: {'comment': comment, 'by_dbt': comment.startswith(sieve.by_dbt())}}) -%}
  {%- endfor -%}
  {{ return(present) }}
{% endmacro %}


{# The prefix with which the comment of each index begins that dbt has created. #}
{% macro by_dbt() %}
  {{ return('made by dbt: ') }}
{% endmacro %}


{# Calls one of Sieve's procedures with named arguments, and returns the result. Strings become SQL literals. #}
{% macro procedure(name, arguments) %}
  {%- set given = [] -%}
  {%- for argument, value in arguments.items() -%}
    {%- if value is string -%}
      {%- set literal = "'" ~ (value | replace('\\', '\\\\') | replace("'", "\\'")) ~ "'" -%}
    {%- else -%}
      {%- set literal = value | string | upper -%}
    {%- endif -%}
    {%- do given.append(argument ~ ' => ' ~ literal) -%}
  {%- endfor -%}
  {{ return(run_query('CALL sieve.' ~ name ~ '(' ~ given | join(', ') ~ ')')) }}
{% endmacro %}
