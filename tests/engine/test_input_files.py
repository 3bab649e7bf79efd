"""The user's files that a program reads."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.engine.input_files import (
    INSTRUMENTATION,
    are_unchanged,
    collect_inputs,
)
from conformance.worker.instrumentation.sitecustomize import INPUTS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a module that a script may import."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "helper.py").write_text("")
    return work


def read_by(folder: Path, code: str) -> dict[str, str]:
    """Return what a program reads of a folder, by path below it."""
    note = folder.parent / "note"
    note.unlink(missing_ok=True)
    variables = {
        **os.environ,
        "PYTHONPATH": f"{INSTRUMENTATION}{os.pathsep}{folder}",
        INPUTS: str(note),
    }
    subprocess.run([sys.executable, "-c", code], env=variables, cwd=folder, check=True)
    return {
        name.removeprefix(f"{folder}/"): h for name, h in collect_inputs(note, [folder]).items()
    }


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import helper", ["helper.py"]),
        ("open('helper.py').close(); open(__import__('os').devnull).close()", ["helper.py"]),
        ("import subprocess as s, sys; s.run([sys.executable, '-c', 'import helper'])",
         ["helper.py"]),
        ("import pathlib; pathlib.Path('helper.py').read_bytes()", ["helper.py"]),
        ("import os; os.close(os.open('helper.py', os.O_RDONLY))", ["helper.py"]),
        ("open('made', 'w').write('1'); open('made').read()", []),
        ("", []),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("folder")
def test_files_that_a_program_reads_are_inputs(folder: Path, code: str, names: list[str]) -> None:
    """Also those of its children, compiled or not; files that it writes itself are none."""
    assert list(read_by(folder, code)) == names
    assert list(read_by(folder, code)) == names  # now from __pycache__


def test_a_missing_file_is_an_input(folder: Path) -> None:
    """The program may do something else once it exists."""
    code = "import contextlib\nwith contextlib.suppress(OSError): open('settings')"
    inputs = {str(folder / name): content for name, content in read_by(folder, code).items()}
    assert list(inputs.values()) == [""]
    assert are_unchanged(inputs)
    (folder / "settings").write_text("1")
    assert not are_unchanged(inputs)


def test_an_edited_file_has_changed(folder: Path) -> None:
    """By its content, not by its modification time."""
    inputs = {str(folder / name): h for name, h in read_by(folder, "import helper").items()}
    os.utime(folder / "helper.py")
    assert are_unchanged(inputs)
    (folder / "helper.py").write_text("x = 1")
    assert not are_unchanged(inputs)


def test_installed_files_are_no_inputs(folder: Path) -> None:
    """Neither are files that no process noted."""
    package = folder / ".venv" / "lib" / "site-packages" / "p.py"
    package.parent.mkdir(parents=True)
    package.write_text("")
    assert read_by(folder, f"open({str(package)!r})") == {}
    assert collect_inputs(folder / "no-note", [folder]) == {}
