"""Modules of the user that are embedded in a reproduction."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.corpus.generated_cases import Function, render_cases
from conformance.triage.repro.embedded_modules import (
    IMPORTS,
    load_source,
    render_embedding,
    render_text,
)
from tests.builders import case

if TYPE_CHECKING:
    from conformance.triage.repro.embedded_modules import EmbeddedModules

ODD = ["", '"', '"""', 'a"', "\\", "\\n\\\n", "é\u2028\x0c\x1c\r\n\x85\x00\t", '\\""""', "'''\n\n"]


@pytest.mark.parametrize("text", ODD)
def test_literal_evaluates_to_the_text(text: str) -> None:
    """Its lines are those that Python counts."""
    code = render_text(text)
    assert ast.literal_eval(code) == text
    assert code.splitlines() == code.split("\n")


@pytest.mark.parametrize("text", ODD)
def test_embedded_module_is_importable(text: str, tmp_path: Path) -> None:
    """A traceback shows its lines and its file name."""
    files = {"mine/__init__.py": "", "mine/odd.py": f"TEXT = {text!r}\n"}
    last = "import mine.odd\nprint(mine.odd.TEXT == " + repr(text) + ", mine.odd.__file__)\n"
    script = tmp_path / "script.py"
    script.write_text("\n".join([*IMPORTS, *render_embedding(files), last]), encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    expected_text, _, file = done.stdout.strip().partition(" ")
    assert (expected_text, Path(file).name, Path(file).exists()) == ("True", "odd.py", False)


def wheel(folder: Path, files: dict[str, str]) -> str:
    """Return the requirement of a wheel of some files."""
    path = folder / "mine-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    return f"mine @ {path.as_uri()}"


def loaded(
    tmp_path: Path, function: str, files: dict[str, str], largest: int = 1000
) -> EmbeddedModules:
    """Return the modules of a wheel that are embedded for a function."""
    ((name, text),) = render_cases([Function(function=function)]).items()
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    name = function.rpartition(":")[2]
    one = replace(case(f"mine/{name}", name=name), file=file)
    wanted = (wheel(tmp_path, files), "optax>=0.1")
    source, embedded = load_source(
        one, wanted, lambda path: path.read_text("utf-8"), largest=largest
    )
    assert "mine" in source.modules
    return embedded


PACKAGE = {
    "mine/__init__.py": "",
    "mine/a.py": "def f():\n    from .b import c\n    from . import d\n    import mine.e\n",
    "mine/b.py": "import numpy, other\nfrom ..nowhere import x\n",
    "mine/d.py": "",
    "mine/e/__init__.py": "from .deep import y",
    "mine/e/deep.py": "not python",
    "mine/unused.py": "",
    "other.py": "",
}


def test_imported_modules_are_embedded(tmp_path: Path) -> None:
    """Their package is no requirement then."""
    embedded = loaded(tmp_path, "mine.a:f", PACKAGE)
    assert sorted(embedded.files) == sorted(PACKAGE.keys() - {"mine/unused.py"})
    assert (set(embedded.packages), embedded.requirements) == ({"mine"}, ("optax>=0.1",))


def test_large_package_is_a_requirement(tmp_path: Path) -> None:
    """It is not embedded."""
    embedded = loaded(tmp_path, "mine.a:f", PACKAGE, largest=20)
    assert (embedded.files, embedded.packages, len(embedded.requirements)) == ({}, frozenset(), 2)
