"""The connection to the driver: py4j's converters, the cache of names, and imports."""

from __future__ import annotations

import subprocess
import sys
from unittest.mock import MagicMock

import pyspark.sql.types  # noqa: F401 - registers the converters
import pytest
from py4j import protocol
from py4j.java_gateway import JavaClass, JavaPackage, JVMView

from sql_ext.driver import attach


def test_only_converters_of_numpy_values_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """`open_gateway` removes py4j's converters of numpy values, and keeps all other converters."""
    before = list(protocol.INPUT_CONVERTER)
    monkeypatch.setattr(protocol, "INPUT_CONVERTER", list(before))
    monkeypatch.setattr(attach, "launch_gateway", lambda: "gateway")
    monkeypatch.setattr(attach, "remember_names", lambda: None)
    assert attach.open_gateway() == "gateway"
    gone = [one for one in before if one not in protocol.INPUT_CONVERTER]
    assert [one for one in before if one not in gone] == protocol.INPUT_CONVERTER
    assert sorted(type(one).__name__ for one in gone) == [
        "NumpyArrayConverter",
        "NumpyScalarConverter",
    ]


def test_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The front end looks up a package or class name only once, as its meaning never changes.

    For a name of no package or class, each use is a new look-up. A second call of `remember_names`
    changes nothing.
    """
    asked: list[str] = []
    answers = {
        "org": JavaPackage("org", None, "v"),
        "PythonUtils": JavaClass("org.PythonUtils", MagicMock()),
        "apache": JavaPackage("org.apache", None, "v"),
        "value": 7,
    }

    def ask(_: object, name: str) -> object:
        asked.append(name)
        return answers[name]

    for kind in (JVMView, JavaPackage):
        monkeypatch.setattr(kind, "__getattr__", ask)
    attach.remember_names()
    once = JVMView.__getattr__
    attach.remember_names()
    assert JVMView.__getattr__ is once
    view = JVMView(None, "v", id="v")
    for _ in range(2):
        assert view.org is answers["org"]
        assert view.org.apache is answers["apache"]
        assert view.PythonUtils is answers["PythonUtils"]
        assert view.value == 7
    assert asked == ["org", "apache", "PythonUtils", "value", "value"]


def test_the_gateway_remembers_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before `open_gateway` connects, it enables the cache of names."""
    done: list[str] = []
    monkeypatch.setattr(protocol, "INPUT_CONVERTER", [])
    monkeypatch.setattr(attach, "remember_names", lambda: done.append("names"))
    monkeypatch.setattr(attach, "launch_gateway", lambda: done.append("launched"))
    attach.open_gateway()
    assert done == ["names", "launched"]


def test_front_end_does_not_import_pandas() -> None:
    """The front end avoids pandas, because its import takes a third of a second."""
    imports = "import sys, sql_ext.frontend.service, sql_ext.frontend.pruning"
    check = "assert not {'pandas', 'matplotlib', 'pyspark.testing'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", f"{imports}; {check}"], check=True)
