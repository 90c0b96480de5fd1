"""Changes a table's schema in ways that no Spark statement offers."""

from __future__ import annotations

import json
from collections.abc import Callable

from spark_session import Lab


def edit_schema(lab: Lab, table: str, edit: Callable[[str], str]) -> None:
    """Changes a table's columns. The function `edit` gets and returns the schema as JSON."""
    database = lab.spark.catalog.currentDatabase()
    catalog = lab.spark._jsparkSession.sharedState().externalCatalog()
    before = catalog.getTable(database, table).schema().json()
    after = edit(before)
    assert after != before
    types = lab.spark._jvm.org.apache.spark.sql.types.DataType
    catalog.alterTableDataSchema(database, table, types.fromJson(after))
    lab.sql(f"REFRESH TABLE {table}")


def with_ids(lab: Lab, table: str, ids: dict[str, int]) -> None:
    """Assigns field ids to a table's columns; Parquet's readers can find columns by field id."""

    def edit(text: str) -> str:
        schema = json.loads(text)
        for field in schema["fields"]:
            field["metadata"]["parquet.field.id"] = ids[field["name"]]
        return json.dumps(schema)

    edit_schema(lab, table, edit)
