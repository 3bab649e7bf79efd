"""Finding Python interpreters, and running each before it is trusted."""

from __future__ import annotations

import os
import re
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.version import Version

from conformance.cells.inspection import inspect_interpreter
from conformance.cells.uvtool import run_uv
from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterator

DOWNLOADS = "CONFORMANCE_PYTHON_DOWNLOADS"


class MissingInterpreterError(InfrastructureError):
    """No interpreter of a Python version runs on this host.

    Attributes:
        python: The version, `major.minor`.
    """

    def __init__(self, python: str, rejected: list[str]) -> None:
        tried = "; ".join(rejected) if rejected else "no candidate found"
        super().__init__(
            f"python {python}: no interpreter runs here ({tried}); install it, put it on PATH, "
            f"or set {DOWNLOADS}=1 to let uv download it"
        )
        self.python = python


class _UvPython(msgspec.Struct):
    version: str
    path: str


@cache
def find_interpreter(python: str) -> Path:
    """Return a CPython interpreter of a version, one that was seen to run.

    Args:
        python: Version, `major.minor`.

    Returns:
        A base interpreter, never that of a virtual environment. Tried in this order: the
        running one, pyenv's, uv's, PATH; then a download if the environment allows it.

    Raises:
        MissingInterpreterError: If there is none; the message says what was tried.
    """
    rejected: list[str] = []
    seen: set[Path] = set()
    for candidate in _candidates(python):
        if candidate in seen:
            continue
        seen.add(candidate)
        base, problem = _examine(candidate, python)
        if base is not None:
            return base
        rejected.append(problem)
    if os.environ.get(DOWNLOADS) == "1":
        return _download(python)
    raise MissingInterpreterError(python, rejected)


def _examine(candidate: Path, python: str) -> tuple[Path | None, str]:
    """Return the base interpreter if the candidate serves, else why not."""
    try:
        found = inspect_interpreter(candidate)
    except InfrastructureError as error:
        return None, str(error)
    if found.version.rpartition(".")[0] != python:
        return None, f"{candidate}: is {found.version}"
    if found.implementation != "cpython" or found.free_threaded:
        build = "free-threaded" if found.free_threaded else found.implementation
        return None, f"{candidate}: is {build}, expected a plain CPython"
    return Path(found.base), ""


def _candidates(python: str) -> Iterator[Path]:
    # Lazily: asking uv costs a process, and is needed only when pyenv has nothing.
    if "{}.{}".format(*sys.version_info[:2]) == python:
        yield Path(getattr(sys, "_base_executable", None) or sys.executable)
    yield from _pyenv(python)
    yield from _uv_managed(python)
    yield from _on_path(python)


def _pyenv(python: str) -> Iterator[Path]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    pattern = re.compile(rf"{re.escape(python)}(\.\d+)?")
    try:
        names = [entry.name for entry in root.iterdir() if pattern.fullmatch(entry.name)]
    except OSError:
        return
    for name in sorted(names, key=Version, reverse=True):
        yield root / name / "bin" / "python"


def _uv_managed(python: str) -> Iterator[Path]:
    arguments = ["python", "list", python, "--only-installed", "--output-format", "json"]
    try:
        text = run_uv(arguments, cwd=Path("/"))
        found = msgspec.json.decode(text, type=list[_UvPython])
    except (InfrastructureError, msgspec.DecodeError):
        return
    for entry in found:
        yield Path(entry.path)


def _on_path(python: str) -> Iterator[Path]:
    for folder in os.get_exec_path():
        if found := shutil.which(f"python{python}", path=folder):
            yield Path(found)


def _download(python: str) -> Path:
    run_uv(["python", "install", python], cwd=Path("/"))
    rejected: list[str] = []
    for candidate in _uv_managed(python):
        base, problem = _examine(candidate, python)
        if base is not None:
            return base
        rejected.append(problem)
    raise MissingInterpreterError(python, rejected)
