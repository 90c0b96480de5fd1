from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sieve.errors import InvalidInputError
from sieve.metadata.registration import (
    Registration,
    parse_registration,
    property_key,
    registrations,
    render_registration,
)
from tests.unit.metadata.manifest_sample import UUID

SAMPLE = Registration(UUID, ("größe", "a.b"), "hdfs://nn:8020/w/.sieve")
VALUE = render_registration(SAMPLE)


def changed(**members: Any) -> str:
    """The value of the sample registration, with some members replaced."""
    return json.dumps(json.loads(VALUE) | members)


def test_round_trip() -> None:
    """A registration is read back unchanged, and its text is ASCII, as metastores require."""
    assert parse_registration(VALUE) == SAMPLE
    assert VALUE.isascii()
    assert json.loads(VALUE)["format"] == 1


def test_unknown_members_are_ignored() -> None:
    """Readers ignore unknown members, as a later release can add members."""
    assert parse_registration(changed(hint=7)) == SAMPLE


def test_only_refresh_auto_has_the_member_refresh() -> None:
    """Only the registration of an index with `refresh = 'auto'` has the member `refresh`."""
    follows = replace(SAMPLE, follows=True)
    assert json.loads(render_registration(follows)) == json.loads(VALUE) | {"refresh": "auto"}
    assert parse_registration(render_registration(follows)) == follows
    assert parse_registration(changed(refresh="manual")) == SAMPLE


@pytest.mark.parametrize(
    "value",
    [
        "",
        "null",
        "[]",
        "{",
        "[" * 1000,
        "9" * 1000,
        VALUE[:-1],
        VALUE + " " * 1024,
        changed(format=2),
        changed(format="1"),
        changed(format=True),
        changed(format=1.0),
        changed(uuid=UUID.upper()),
        changed(uuid="../" + UUID[3:]),
        changed(uuid=7),
        changed(column=[]),
        changed(column="ab"),
        changed(column=["a", ""]),
        changed(column=["a", None]),
        changed(column=["a"] * 101),
        changed(root="/no/scheme"),
        changed(root="relative"),
        changed(root="file:/a\0"),
        changed(root=None),
        '{"format":1}',
    ],
)
def test_ill_formed_values_are_no_registration(value: str) -> None:
    """Any user can write a malformed value, so a malformed value is no registration."""
    assert parse_registration(value) is None


def test_a_value_of_a_kilobyte_is_not_written() -> None:
    """Sieve refuses a value of 1 KB or more. The error names the setting for a shorter path."""
    short = Registration(UUID, ("c",), "file:/")
    most = 1023 - len(render_registration(short))
    fits = Registration(UUID, ("c",), "file:/" + "x" * most)
    assert parse_registration(render_registration(fits)) == fits
    with pytest.raises(InvalidInputError, match=r"spark\.sieve\.path"):
        render_registration(Registration(UUID, ("c",), "file:/" + "x" * (most + 1)))
    assert parse_registration(render_registration(fits) + " ") is None


def test_keys() -> None:
    """Names are stored in lower case; empty or long names and control characters are refused."""
    assert property_key("Customer_Sieve") == "sieve.index.customer_sieve"
    for name in ("", "x" * 129, "a\nb", "a\0"):
        with pytest.raises(InvalidInputError):
            property_key(name)
    for name in ("x", "x" * 128):
        assert registrations({property_key(name): VALUE}) == {name: SAMPLE}


def test_a_column_has_up_to_a_hundred_parts() -> None:
    """The path of a column has 1 to 100 parts, all non-empty."""
    found = parse_registration(changed(column=["a"] * 100))
    assert found is not None
    assert len(found.column) == 100
    for column in ([], ["a", ""], ["a"] * 101):
        assert parse_registration(changed(column=column)) is None


def test_registrations_among_properties() -> None:
    """Only well-formed properties with the exact prefix are registrations."""
    properties = {
        "sieve.index.b": VALUE,
        "sieve.index.a": VALUE,
        "sieve.index.broken": "{",
        "sieve.index.": VALUE,
        "sieve.index." + "x" * 129: VALUE,
        "SIEVE.INDEX.c": VALUE,
        "owner": VALUE,
    }
    assert registrations(properties) == {"a": SAMPLE, "b": SAMPLE}
    assert list(registrations(properties)) == ["a", "b"]
