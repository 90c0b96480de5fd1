"""Attaching to the driver: which values a call converts, and which imports a call needs."""

from __future__ import annotations

import subprocess
import sys
from unittest.mock import MagicMock

import numpy as np
import pytest
from py4j import protocol
from py4j.java_gateway import JavaClass, JavaPackage, JVMView
from pyspark.sql.types import NumpyScalarConverter

from sql_ext.driver import attach
from sql_ext.driver.attach import NumpyValuesOnly


def test_numpy_values_are_converted_and_others_are_not_asked_about() -> None:
    """The result of a conversion equals PySpark's."""
    asked: list[object] = []

    class Converter(NumpyScalarConverter):
        def can_convert(self, obj: object) -> bool:
            asked.append(obj)
            return super().can_convert(obj)

    converter = NumpyValuesOnly(Converter())
    for value in ("a", 1, [1], None, sys):
        assert not converter.can_convert(value)
    assert asked == []
    assert converter.can_convert(np.int64(7))
    assert not converter.can_convert(np.array([7]))
    assert converter.convert(np.int64(7), None) == 7


def test_each_converter_of_numpy_values_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Converters of other values stay, and the order of all converters stays."""
    before = list(protocol.INPUT_CONVERTER)
    monkeypatch.setattr(protocol, "INPUT_CONVERTER", list(before))
    monkeypatch.setattr(attach, "launch_gateway", lambda: "gateway")
    monkeypatch.setattr(attach, "remember_names", lambda: None)
    assert attach.open_gateway() == "gateway"
    now = protocol.INPUT_CONVERTER
    assert len(now) == len(before)
    wrapped = [one for one in now if isinstance(one, NumpyValuesOnly)]
    assert len(wrapped) == 2
    pairs = zip(now, before, strict=True)
    assert all(one is other for one, other in pairs if not isinstance(one, NumpyValuesOnly))


def test_a_name_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package or class is looked up once, since it never changes.

    Any other name may change, so each use looks up the name. Repeated calls of `remember_names`
    change nothing.
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
    """The gateway caches names from the first call of the driver on."""
    done: list[str] = []
    monkeypatch.setattr(protocol, "INPUT_CONVERTER", [])
    monkeypatch.setattr(attach, "remember_names", lambda: done.append("names"))
    monkeypatch.setattr(attach, "launch_gateway", lambda: done.append("launched"))
    attach.open_gateway()
    assert done == ["names", "launched"]


def test_no_import_of_the_front_end_brings_pandas() -> None:
    """Importing pandas takes a third of a second.

    The first statement of each driver would wait for such an import.
    """
    imports = "import sys, sql_ext.frontend.service, sql_ext.frontend.pruning"
    check = "assert not {'pandas', 'matplotlib', 'pyspark.testing'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", f"{imports}; {check}"], check=True)
