"""Notebooks as Python source."""

from __future__ import annotations

import json

import pytest

from conformance.scan.notebooks import read_notebook


def make_notebook(*cells: str, kind: str = "code") -> bytes:
    """Return a notebook with these cells, as Jupyter writes it."""
    listed = [{"cell_type": kind, "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"cells": listed, "nbformat": 4}, indent=1).encode()


def test_cells_are_one_module() -> None:
    """With the cell, and its line, of each line."""
    data = make_notebook("import jax\nx = 1\n", "jax.f(x)")
    notebook = read_notebook(data)
    assert notebook.source == "import jax\nx = 1\njax.f(x)\n"
    assert [(one.cell, one.line) for one in notebook.places] == [(1, 1), (1, 2), (2, 1)]


def test_lines_are_found_in_the_file() -> None:
    """Where an editor, or a pull request, shows them; also the same line in two cells."""
    data = make_notebook("import jax\n", "jax.f()\n", "jax.f()\n# \u00e9")
    lines = data.decode().splitlines()
    found = [lines[one.file_line - 1] for one in read_notebook(data).places]
    assert [line.strip().strip(",") for line in found] == [
        r'"import jax\n"', r'"jax.f()\n"', r'"jax.f()\n"', r'"# \u00e9"'
    ]  # fmt: skip
    numbers = [one.file_line for one in read_notebook(data).places]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    ("cell", "source"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1\n"),
        ("if x:\n    !ls\n", "if x:\n    pass\n"),
        ("files = !ls\nx = 1", "pass\nx = 1\n"),
        ("jax.f?\nx = 1", "pass\nx = 1\n"),
        ("%%time\nx = 1", "pass\nx = 1\n"),
        ("%%bash\nls -l", ""),
        ("x = (1\n  % 2)", "x = (1\n  % 2)\n"),
    ],
)
def test_magics_are_no_python(cell: str, source: str) -> None:
    """A cell in another language has none."""
    assert read_notebook(make_notebook(cell)).source == source


def test_text_is_no_code() -> None:
    """Nor are raw cells."""
    assert read_notebook(make_notebook("jax.f(", kind="markdown")).source == ""


@pytest.mark.parametrize("data", [b"[]", b"{}", b'{"cells": [1]}', b"x", b"\xff"])
def test_what_is_no_notebook_is_an_error(data: bytes) -> None:
    """The caller names the file."""
    with pytest.raises(ValueError, match=r"."):
        read_notebook(data)
