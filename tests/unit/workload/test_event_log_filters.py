from __future__ import annotations

import time

import pytest

from sieve.workload.column_use import ColumnUse, Kind, Uses
from sieve.workload.event_log.filters import (
    MAX_DEPTH,
    ScanSchema,
    UnreadableFilterError,
    column_uses,
)

SCHEMA = (
    "struct<id:bigint,customer:bigint,name:string,ts:timestamp,s:struct<a:bigint,b b:bigint>,"
    "my col:bigint,my text:string,a.b:bigint,x,y:int:bigint,t`k:int>"
)
EQUALS = ColumnUse(Kind.EQUALS)


def uses(pushed: str, data: str = "[]", schema: str = SCHEMA) -> Uses:
    """Returns how a scan with these filters uses its columns."""
    return column_uses(pushed, data, ScanSchema(schema, data))


@pytest.mark.parametrize(
    ("pushed", "expected"),
    [
        ("", {}),
        ("[]", {}),
        ("[IsNotNull(id)]", {}),
        ("[IsNotNull(id), EqualTo(id,5)]", {"id": EQUALS}),
        ("[EqualNullSafe(id,5)]", {"id": EQUALS}),
        ("[IsNull(id)]", {"id": ColumnUse(Kind.NULL)}),
        ("[In(id, [1,2,3])]", {"id": ColumnUse(Kind.IN, 3)}),
        ("[In(id, [1])]", {"id": ColumnUse(Kind.IN, 1)}),
        ("[GreaterThan(id,3)]", {"id": ColumnUse(Kind.RANGE)}),
        ("[GreaterThanOrEqual(id,3)]", {"id": ColumnUse(Kind.RANGE)}),
        ("[LessThanOrEqual(id,3)]", {"id": ColumnUse(Kind.RANGE)}),
        ("[GreaterThan(id,3), LessThan(id,9)]", {"id": ColumnUse(Kind.BETWEEN)}),
        ("[StringStartsWith(name,4)]", {"name": ColumnUse(Kind.PREFIX)}),
        ("[StringEndsWith(name,4)]", {"name": ColumnUse(Kind.OTHER)}),
        ("[StringContains(name,4)]", {"name": ColumnUse(Kind.OTHER)}),
        ("[Not(EqualTo(id,5)), Not(In(customer, [1,2]))]", {
            "id": ColumnUse(Kind.UNEQUAL), "customer": ColumnUse(Kind.UNEQUAL)}),
        ("[Or(And(GreaterThan(id,3),LessThan(id,9)),EqualTo(id,4))]",
         {"id": ColumnUse(Kind.BETWEEN)}),
        ("[Or(EqualTo(id,3),EqualTo(customer,4))]", {
            "id": ColumnUse(Kind.OR), "customer": ColumnUse(Kind.OR)}),
        ("[Or(EqualTo(id,3),AlwaysTrue())]", {"id": ColumnUse(Kind.OR)}),
        ("[CollatedEqualTo(name,a (b)), EqualTo(id,5)]", {"id": EQUALS}),
        ("[EqualTo(id,ScalarSubquery#38)]", {"id": EQUALS}),
        ("[EqualTo(name,it's (a) [b], c), EqualTo(id,5)]", {"name": EQUALS, "id": EQUALS}),
        ("[EqualTo(name,)]", {"name": EQUALS}),
    ],
)  # fmt: skip
def test_pushed_filters(pushed: str, expected: dict[str, ColumnUse]) -> None:
    """Each form of pushed filter in real event logs is read as a use of its column."""
    assert uses(pushed) == {(name,): use for name, use in expected.items()}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("[isnotnull(name#1), (lower(name#1) = x)]", {"lower(name)": EQUALS}),
        ("[(upper(my text#3) > X), (length(name#1) <=> 3)]",
         {"upper(`my text`)": ColumnUse(Kind.RANGE), "length(name)": EQUALS}),
        ("[(upper(id#1) = 5)]", {}),
        ("[(get_json_object(name#1, $.user.ids[0]) = 42)]",
         {"get_json_object(name, '$.user.ids[0]')": EQUALS}),
        ("[(lower(missing#1) = x)]", {}),
        ("[(get_json_object(name#1, $['a b']) = 42)]", {}),
        ("[NOT (lower(name#1) = x)]", {}),
        ("[(lower(name#1) = id#2L)]", {"lower(name)": EQUALS}),
    ],
)  # fmt: skip
def test_expressions(data: str, expected: dict[str, ColumnUse]) -> None:
    """A comparison of an expression on one column is a use of the expression."""
    assert uses("[]", data) == {("", sql): use for sql, use in expected.items()}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("[isnotnull(tags#7), array_contains(tags#7, t7)]", {"tags": EQUALS}),
        ("[array_contains(s#1.l, 7)]", {"s.l": EQUALS}),
        ("[array_contains(items#10.price, 7)]", {"items.price": EQUALS}),
        ("[arrays_overlap(tags#7, [t7,t8])]", {"tags": EQUALS}),
        ("[array_contains(map_keys(attrs#9), k7), array_contains(map_values(attrs#9), 7)]",
         {"map_keys(attrs)": EQUALS, "map_values(attrs)": EQUALS}),
        ("[exists(nums#8, lambdafunction((lambda x#13L = 7), lambda x#13L, false))]",
         {"nums": EQUALS}),
        ("[exists(nums#8, lambdafunction((lambda x#13L > 7), lambda x#13L, false))]",
         {"nums": ColumnUse(Kind.RANGE)}),
        ("[exists(items#10, lambdafunction((lambda i#14.price = 7), lambda i#14, false))]",
         {"items.price": EQUALS}),
        ("[exists(tags#7, lambdafunction(lambda x#17 IN (t7,t8), lambda x#17, false))]",
         {"tags": EQUALS}),
        ("[exists(tags#7, lambdafunction(StartsWith(lambda x#18, t7), lambda x#18, false))]", {}),
        ("[exists(items#10, lambdafunction((lambda i#14.secret = 7), lambda i#14, false))]", {}),
        ("[NOT array_contains(tags#7, t7)]", {}),
        ("[(array_contains(tags#7, a) OR (id#6L = 7))]", {}),
        ("[array_contains(missing#7, t7)]", {}),
    ],
)  # fmt: skip
def test_elements(data: str, expected: dict[str, ColumnUse]) -> None:
    """A predicate on elements of an array is a use of an index on the elements."""
    schema = (
        "struct<id:bigint,tags:array<string>,nums:array<bigint>,attrs:map<string,bigint>,"
        "items:array<struct<price:bigint>>,s:struct<l:array<bigint>>>"
    )
    assert uses("[]", data, schema) == {("", sql, "elements"): use for sql, use in expected.items()}


@pytest.mark.parametrize(
    ("pushed", "data", "column"),
    [
        ("[StringContains(name,abcd)]", "[]", "name"),
        ("[StringContains(name,a, b)]", "[]", "name"),
        ("[StringEndsWith(my text,(ü).)]", "[]", "`my text`"),
        ("[StringContains(s.`b b`,abcd)]", "[]", "s.`b b`"),
        ("[StringContains(missing,abcd)]", "[]", None),
        ("[IsNotNull(name)]", "[isnotnull(name#1), name#1 LIKE %ab%abcd%]", "name"),
        ("[]", "[name#1 LIKE %abcd_x%]", "name"),
        ("[]", "[name#1 LIKE %abc%x_yz%]", None),
        ("[]", "[name#1 LIKE abcd%x_z]", None),
        ("[]", "[missing#1 LIKE %abcd_x%]", None),
        ("[]", "[NOT name#1 LIKE %abcd_x%]", None),
    ],
)
def test_parts_of_texts(pushed: str, data: str, column: str | None) -> None:
    """A predicate on at least four bytes of a text is a use of an index on substrings."""
    expected = {} if column is None else {("", column, "substring"): ColumnUse(Kind.CONTAINS)}
    assert uses(pushed, data) == expected


@pytest.mark.parametrize(
    ("pushed", "kind"),
    [
        ("[Not(StringContains(name,abcd))]", Kind.UNEQUAL),
        ("[Or(StringContains(name,abcd),StringContains(name,efgh))]", Kind.CONTAINS),
        ("[Or(StringContains(name,abcd),EqualTo(name,x))]", Kind.OR),
    ],
)
def test_parts_of_texts_in_other_filters(pushed: str, kind: Kind) -> None:
    """An index on substrings cannot evaluate NOT, or an OR with another predicate."""
    assert uses(pushed)["", "name", "substring"] == ColumnUse(kind)


def test_names_with_dots_blanks_and_back_ticks() -> None:
    """A quoted name is one part of a path, and the name of a struct's field is a path."""
    found = uses(
        "[EqualTo(s.a,5), GreaterThan(s.`b b`,3), EqualTo(`my col`,7), EqualNullSafe(`a.b`,4), "
        "LessThan(`x,y:int`,5), EqualTo(`t``k`,1)]"
    )
    assert found == {
        ("s", "a"): EQUALS,
        ("s", "b b"): ColumnUse(Kind.RANGE),
        ("my col",): EQUALS,
        ("a.b",): EQUALS,
        ("x,y:int",): ColumnUse(Kind.RANGE),
        ("t`k",): EQUALS,
    }


@pytest.mark.parametrize(
    "pushed",
    [
        "[IsNotNull(name), EqualTo(name,x) AND (id#0L = 5)]",
        "[EqualTo(name,smile :) )]",
        "[EqualTo(name,:()]",
        "[IsNotNull(id), EqualTo(id,5), ...",
        "[IsNotNull(id), EqualTo(id,12...",
        "[EqualTo(id,5)",
        "[EqualTo(id,5)] ",
        "[EqualTo(,5)]",
        "[EqualTo(s.,5)]",
        "[And(EqualTo(id,5))]",
        "[Not(EqualTo(id,5)]",
        "EqualTo(id,5)]",
        "[5]",
        "[EqualTo(`id,5)]",
    ],
)
def test_truncated_or_unbalanced_filters_are_refused(pushed: str) -> None:
    """The parser refuses a list of filters that is truncated or has unbalanced brackets."""
    with pytest.raises(UnreadableFilterError):
        uses(pushed)


def test_only_names_in_the_schema_are_columns() -> None:
    """A name is a column only if it is in the schema of the scan."""
    assert uses("[EqualTo(name,x), EqualTo(secret,5)]") == {("name",): EQUALS}
    assert uses("[EqualTo(name,x), EqualTo(s.secret,5)]") == {("name",): EQUALS}
    assert uses("[]", "[(name#1 = x), (year(secret#2) = 5)]") == {}


def test_whole_arrays_and_structs_are_not_used() -> None:
    """No index can serve IS NULL of an array, a map or a struct."""
    schema = "struct<id:bigint,tags:array<string>,attrs:map<string,int>,s:struct<a:bigint>>"
    filters = "[IsNull(tags), IsNull(attrs), IsNull(s), IsNull(s.a), IsNull(id)]"
    null = ColumnUse(Kind.NULL)
    assert uses(filters, schema=schema) == {("s", "a"): null, ("id",): null}


def test_column_beyond_a_truncated_schema_needs_a_filter() -> None:
    """If the schema is truncated, a name is a column if it is in the data filters."""
    cut = "struct<a:int,b:int,... 12 more fields>"
    assert ScanSchema(cut, "").is_cut_off
    assert not ScanSchema(SCHEMA, "").is_cut_off
    pushed = "[EqualTo(id,5), EqualTo(secret,1)]"
    assert uses(pushed, "[(id#7L = 5), EqualTo(secret,1)]", cut) == {("id",): EQUALS}
    assert uses(pushed, "[(id#L = 5)]", cut) == {}
    assert uses("[EqualTo(id,5)]", "[(id#7L = 5)]", "struct<a:int>") == {}


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("[isnotnull(ts#13), (year(cast(ts#13 as date)) = 1970)]", Kind.BETWEEN),
        ("[(year(ts#13) <=> 1970)]", Kind.BETWEEN),
        ("[(year(ts#13) >= 1970)]", Kind.RANGE),
        ("[(cast(ts#13 as date) < 1970-01-02)]", Kind.RANGE),
        ("[(date_trunc(month, ts#13, Some(Etc/UTC)) = 1970-01-01 00:00:00)]", Kind.BETWEEN),
        ("[(date_add(ts#13, 3) > 1970-01-01)]", Kind.RANGE),
        ("[(hour(ts#13) = 5)]", None),
        ("[(upper(ts#13) = 5)]", None),
        ("[NOT (year(ts#13) = 1970)]", None),
    ],
)
def test_functions_of_a_column_are_ranges(data: str, kind: Kind | None) -> None:
    """Spark does not push down monotone functions of a column.

    A monotone function of a column counts as a range.
    """
    assert uses("[]", data) == ({} if kind is None else {("ts",): ColumnUse(kind)})


def test_a_cast_of_a_string_is_no_range() -> None:
    """A cast from string to number is no range, because strings of digits do not sort as numbers.

    If the schema is truncated before a column, the column's type is unknown.
    """
    assert uses("[]", "[(cast(name#3 as int) = 5)]") == {}
    assert uses("[]", "[(cast(id#3 as double) = 5.0)]") == {("id",): ColumnUse(Kind.BETWEEN)}
    assert uses("[]", "[(cast(id#3 as int) = 5)]", "struct<a:int,... 2 more fields>") == {}
    assert uses("[]", "[(year(id#3) = 5)]", "struct<a:int,... 2 more fields>") == {
        ("id",): ColumnUse(Kind.BETWEEN)
    }


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("Not(", ")", Kind.UNEQUAL),
        ("And(", ",IsNotNull(id))", Kind.NULL),
        ("And(IsNotNull(id),", ")", Kind.NULL),
        ("Or(", ",IsNull(id))", Kind.NULL),
        ("Or(IsNull(id),", ")", Kind.NULL),
    ],
)
def test_levels_are_bounded(before: str, after: str, kind: Kind) -> None:
    """The parser refuses a list with a deeply nested filter, without a stack overflow."""

    def nested(levels: int) -> str:
        return before * levels + "IsNull(id)" + after * levels

    for text in ("[{}]", "[IsNotNull(id), {}]"):
        assert uses(text.format(nested(MAX_DEPTH))) == {("id",): ColumnUse(kind)}
        with pytest.raises(UnreadableFilterError, match="200 levels"):
            uses(text.format(nested(MAX_DEPTH + 1)))


def test_long_hostile_text_is_read_in_time() -> None:
    """The time to read filters is linear in their length, for any constants."""
    start = time.monotonic()
    filler = ", (cast(" * 50_000
    assert uses("[IsNull(id)]", f"[(name#1 = {filler})]") == {("id",): ColumnUse(Kind.NULL)}
    with pytest.raises(UnreadableFilterError):
        uses("[EqualTo(name," + "(" * 400_000 + ")]")
    assert time.monotonic() - start < 5


def test_parts_of_a_variant_are_no_columns() -> None:
    """A plan shows no paths in a VARIANT, so predicates on VARIANT parts are no column uses."""
    pushed, filters = "[EqualTo(v.`0`,7), GreaterThan(id,3)]", "[(v#1.0 = 7), (id#2L > 3)]"
    schema = ScanSchema("struct<id:bigint,v:struct<0:int>>", filters)
    assert column_uses(pushed, filters, schema) == {("id",): ColumnUse(Kind.RANGE)}
    schema = ScanSchema("struct<v:struct<a:int,0:int>>", filters)
    assert column_uses("[EqualTo(v.`0`,7)]", filters, schema) == {
        ("v", "0"): ColumnUse(Kind.EQUALS)
    }
