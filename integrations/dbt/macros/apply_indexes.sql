{#
  Post-hook: creates, refreshes and drops Sieve indexes, so that a model's table has the indexes of the model's config.

      config(indexes=[{'columns': ['id'], 'type': 'sieve', 'options': {'budget': '2%'}}])

  The hook creates an index that is missing or has other options, and refreshes each other index of the config. The
  hook drops an index that an earlier run created and the config no longer lists. Indexes that dbt did not create stay.
  Entries of other types are for other databases. Each column of an entry gets a separate index. The name of the index
  is <column>_sieve, unless the entry has a `name`. This is a hook because dbt-spark's materializations never call
  dbt's own create_indexes.
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


{# The indexes of a config, by name. The comment of an index has its column and options; later runs compare comments. #}
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
      {#- Sieve converts the names of indexes to lower case. -#}
      {%- set name = (entry.get('name') or (column | replace('`', '') | replace('.', '_')) ~ '_sieve') | lower -%}
      {%- set options = entry.get('options') or {} -%}
      {%- set comment = sieve.by_dbt() ~ tojson({'column': column, 'options': options}, sort_keys=true) -%}
      {%- do wanted.update({name: {'column': column, 'options': options, 'comment': comment}}) -%}
    {%- endfor -%}
  {%- endfor -%}
  {{ return(wanted) }}
{% endmacro %}


{# The Sieve indexes of a table, by name: the comment, and whether dbt created the index. #}
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


{# The prefix of the comments of indexes that dbt has created. #}
{% macro by_dbt() %}
  {{ return('made by dbt: ') }}
{% endmacro %}


{# The answer of one of Sieve's procedures. The call passes arguments by name, and strings as SQL literals. #}
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
