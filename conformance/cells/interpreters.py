"""Search for Python interpreters; each is run before it is trusted."""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.version import Version

from conformance.cells.interpreter_inspection import inspect_interpreter
from conformance.cells.uvtool import run_uv
from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DOWNLOADS = "CONFORMANCE_PYTHON_DOWNLOADS"
"""Variable that forbids downloads if it is `0`."""
_FORBIDDING = frozenset({"0", "false", "never", "no", "off"})
_SEARCH_LOCK = threading.Lock()
"""Held during a search, so that cells with the same Python search and download it once."""
_DOWNLOAD_TIMEOUTS = {"UV_HTTP_CONNECT_TIMEOUT": "5", "UV_HTTP_RETRIES": "1"}
"""Limits of a download: without a network it fails in seconds, and the run continues."""


class MissingInterpreterError(InfrastructureError):
    """No interpreter of a Python version runs on this host.

    Args:
        python: Python version, `major.minor`.
        rejected: Unsuitable candidates, each with the reason.

    Attributes:
        python: Python version, `major.minor`.
    """

    def __init__(self, python: str, rejected: Sequence[str]) -> None:
        tried = "; ".join(rejected) if rejected else "no candidate found"
        super().__init__(
            f"python {python}: no interpreter runs on this host ({tried}); install one with "
            f"'uv python install {python}', install the distribution's package of python{python}, "
            f"or put a python{python} on PATH"
        )
        self.python = python


class _UvPython(msgspec.Struct):
    version: str
    path: str


def find_interpreter(python: str, *, download: bool = True) -> Path:
    """Return a CPython interpreter of a version, which has been run successfully.

    Candidates in order: the running interpreter, pyenv's, uv's, those on PATH. If none of them
    runs, uv downloads one, unless `CONFORMANCE_PYTHON_DOWNLOADS` is `0`.

    Args:
        python: Python version, `major.minor`.
        download: Whether uv may download it, unless the environment variable forbids it.

    Returns:
        A base interpreter, never that of a virtual environment.

    Raises:
        MissingInterpreterError: If there is none. The message lists the candidates.
    """
    download = download and os.environ.get(DOWNLOADS, "").lower() not in _FORBIDDING
    with _SEARCH_LOCK:
        found, rejected = _search(python, download=download)
    if found is None:
        raise MissingInterpreterError(python, rejected)
    return found


def forget_interpreters() -> None:
    """Clear the cache of found interpreters, because the host may have changed."""
    _search.cache_clear()


@cache
def _search(python: str, *, download: bool) -> tuple[Path | None, tuple[str, ...]]:
    """Return an interpreter and the reasons against other candidates; failures are cached too."""
    found, rejected = _find_usable(_list_candidates(python), python)
    if found is None and download:
        try:
            run_uv(
                # --no-bin: otherwise uv puts a link to it into a folder on the user's PATH.
                ["python", "install", python, "--no-bin"],
                cwd=Path("/"),
                defaults=_DOWNLOAD_TIMEOUTS,
                quiet=False,  # otherwise uv does not print why it failed
            )
        except InfrastructureError as error:
            causes = str(error).split("; ")
            # The first cause names the file, the last the error of the network.
            summary = ": ".join(dict.fromkeys((causes[0], causes[-1])))
            # Not raised: the other candidates belong into the same message.
            return None, (*rejected, f"uv: {summary}")
        found, rejected = _find_usable(_list_uv_managed(python), python)
    return found, tuple(rejected)


def _find_usable(candidates: Iterable[Path], python: str) -> tuple[Path | None, list[str]]:
    problems: dict[Path, str] = {}
    for candidate in candidates:
        if candidate not in problems:
            base, problems[candidate] = _examine(candidate, python)
            if base is not None:
                return base, [problem for problem in problems.values() if problem]
    return None, list(problems.values())


def _examine(candidate: Path, python: str) -> tuple[Path | None, str]:
    """Return the base interpreter of a suitable candidate, or why it is unsuitable."""
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


def _list_candidates(python: str) -> Iterator[Path]:
    # A generator: uv is a child process, which is needed only if pyenv has no interpreter.
    yield from _list_running(python)
    # Before PATH: the shims of pyenv on it fail for versions that are not activated.
    yield from _list_pyenv(python)
    yield from _list_uv_managed(python)
    for folder in os.get_exec_path():
        if found := shutil.which(f"python{python}", path=folder):
            yield Path(found)


def _list_running(python: str) -> Iterator[Path]:
    if "{}.{}".format(*sys.version_info[:2]) == python:
        yield Path(getattr(sys, "_base_executable", None) or sys.executable)


def _list_pyenv(python: str) -> Iterator[Path]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    pattern = re.compile(rf"{re.escape(python)}(\.\d+)?")
    try:
        names = [entry.name for entry in root.iterdir() if pattern.fullmatch(entry.name)]
    except OSError:
        return
    # By version: 3.9.10 is newer than 3.9.2.
    for name in sorted(names, key=Version, reverse=True):
        yield root / name / "bin" / "python"


def _list_uv_managed(python: str) -> Iterator[Path]:
    arguments = ["python", "list", python, "--only-installed", "--output-format", "json"]
    try:
        text = run_uv(arguments, cwd=Path("/"), quiet=False)
        found = msgspec.json.decode(text, type=list[_UvPython])
    except (InfrastructureError, msgspec.DecodeError):
        return
    for entry in found:
        yield Path(entry.path)
