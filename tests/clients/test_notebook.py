"""Runs every cell of the notebooks in `examples/` in order, each notebook in a new kernel."""

from __future__ import annotations

import base64
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.tools

HOME = Path(__file__).resolve().parents[2]
TOOLS = HOME / "build" / "notebook"
NOTEBOOKS = sorted((HOME / "examples" / "notebooks").glob("*.ipynb"))

RUN = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], 4)
NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
nbformat.write(notebook, "run.ipynb")
"""
# Outputs that contain times or UUIDs, even in file names, differ between runs.
VARYING = ("seconds", "uuid", "part-0")


def results(path: Path) -> dict[str, dict[str, Any]]:
    """The result of each cell, by kind of output, such as text or HTML."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return {
        cell["id"]: {kind: "".join(text) for kind, text in output["data"].items()}
        for cell in cells
        for output in cell.get("outputs", ())
        if output["output_type"] == "execute_result"
    }


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_cells_show_their_saved_results(path: Path, tmp_path: Path) -> None:
    """No cell fails, and each cell shows the saved result. Only times and UUIDs may differ."""
    if not TOOLS.exists():
        pytest.fail("run `make test-clients`, which installs what runs notebooks")
    places = os.pathsep.join([str(HOME), str(TOOLS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", RUN, path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    saved, found = results(path), results(tmp_path / "run.ipynb")
    assert saved.keys() == found.keys()
    varying = [name for name in saved if any(v in saved[name]["text/plain"] for v in VARYING)]
    assert len(varying) * 3 < len(saved)
    for name, shown in saved.items():
        if name in varying:
            # The first line of a result contains its column names.
            heads = {each["text/plain"].splitlines()[0].split()[0] for each in (shown, found[name])}
            assert len(heads) == 1
            assert shown.keys() == found[name].keys()
        else:
            assert found[name] == shown


def test_pictures_are_saved_in_full() -> None:
    """The notebooks contain pictures of the size that `sieve inspect` draws, and the summary."""
    shown = [cell for path in NOTEBOOKS for cell in results(path).values() if "image/png" in cell]
    for cell in shown:
        png = base64.b64decode(cell["image/png"])
        assert struct.unpack(">II", png[16:24]) == (1320, 990)
        assert cell["text/plain"].startswith("files read for a key that occurs: ")
    assert shown


def test_answers_are_tables_with_bars() -> None:
    """The saved notebooks show shares as bars in HTML."""
    shown = [cell for path in NOTEBOOKS for cell in results(path).values()]
    assert sum("position:absolute" in cell.get("text/html", "") for cell in shown) > 3
