"""Inspection of Python interpreters and of their installed packages, by running them."""

from __future__ import annotations

import math
import os
import subprocess
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from conformance.errors import InfrastructureError, UsageError
from conformance.files import describe_os_error
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

TIMEOUT: Final = 10.0
"""Seconds in which an interpreter must report its version or its packages."""
FILES_TIMEOUT: Final = 300.0
"""Seconds in which an interpreter must compare every file of its environment."""
_T = TypeVar("_T")
# In the syntax of old Pythons: any candidate is run, and its version must be reported. `venv`
# relies on the private `_base_executable`, too.
_VERSION_SCRIPT: Final = """
import json, sys, sysconfig
print(json.dumps({
    "version": "%d.%d.%d" % sys.version_info[:3],
    "implementation": sys.implementation.name,
    "base": getattr(sys, "_base_executable", None) or sys.executable,
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
}))
"""
# The first distribution of a name counts, in both scripts: Python imports from the first folder of
# the path that has a package.
_PACKAGES_SCRIPT: Final = """
import importlib.metadata, json, re, sys
packages = {}
for dist in importlib.metadata.distributions():
    name = re.sub(r"[-_.]+", "-", dist.metadata["Name"] or "").lower()
    packages.setdefault(name, dist.version)
print(json.dumps({"version": "%d.%d.%d" % sys.version_info[:3], "packages": packages}))
"""
_JAX: Final = ("jax", "jaxlib")
_LARGEST_COMPARED: Final = 2**20
"""Size in bytes up to which `describe_edits` compares the content of a file."""
_MAX_NAMES: Final = 3
"""Number of files that a description of edits names."""
_EDITS_SCRIPT: Final = """
import base64, csv, hashlib, importlib.metadata, json, pathlib, re, sys
wanted, largest = sys.argv[1].split(), float(sys.argv[2])
edited = {}
seen = set()
for dist in importlib.metadata.distributions():
    name = re.sub(r"[-_.]+", "-", dist.metadata["Name"] or "").lower()
    if name in seen or wanted and name not in wanted:
        continue
    seen.add(name)
    # From Python 3.12 on, `dist.files` leaves out files that no longer exist.
    for row in csv.reader((dist.read_text("RECORD") or "").splitlines()):
        file, recorded, size, *_ = *row, "", "", ""
        mode, _, value = recorded.partition("=")
        if mode != "sha256" or pathlib.PurePosixPath(file).parts[0] == "..":
            continue
        path = pathlib.Path(dist.locate_file(file))
        try:
            found_size = path.stat().st_size
            if found_size > largest:
                intact = size in {"", str(found_size)}
            else:
                digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest())
                intact = digest.rstrip(b"=").decode() == value
        except OSError:
            intact = False
        if not intact:
            edited.setdefault(name, []).append(file)
print(json.dumps({name: sorted(files) for name, files in sorted(edited.items())}))
"""


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """Version and build of a Python interpreter.

    Attributes:
        version: `major.minor.patch`.
        implementation: `cpython`, `pypy`.
        base: Base interpreter; the interpreter itself outside a virtual environment.
        free_threaded: Build without the global interpreter lock.
    """

    version: str
    implementation: str
    base: str
    free_threaded: bool


class _Packages(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    packages: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathEnvironment:
    """An environment that was not created by this project.

    Attributes:
        interpreter: Python interpreter of the environment.
        version: Python version, `major.minor.patch`.
        packages: Version by normalised distribution name.
    """

    interpreter: Path
    version: str
    packages: Mapping[str, str]

    @property
    def python(self) -> str:
        """Python version, `major.minor`."""
        return self.version.rpartition(".")[0]

    @property
    def jax(self) -> str:
        """Version of jax."""
        return self.packages["jax"]


def inspect_interpreter(python: Path) -> Interpreter:
    """Run an interpreter and return its version and build.

    Args:
        python: Interpreter.

    Raises:
        InfrastructureError: If it does not run, or prints something else.
    """
    return _run_script(python, Interpreter, _VERSION_SCRIPT)


# Cached: one command asks for the same interpreter in selectors, locks and plans.
@cache
def inspect_path_environment(python: Path) -> PathEnvironment:
    """Run the interpreter of an existing environment and return its Python and packages.

    Args:
        python: Interpreter of the environment, run isolated from PYTHONPATH and user site.

    Raises:
        UsageError: If there is no such file.
        InfrastructureError: If the interpreter does not run, or has no jax.
    """
    # A path that does not exist is a mistake of the user; an interpreter that does not run is not.
    if not os.path.isfile(python):  # noqa: PTH113 - Path raises for a name that is too long
        raise UsageError(f"path:{python}: no such file, expected the python of an environment")
    found = _run_script(python, _Packages, _PACKAGES_SCRIPT)
    if "jax" not in found.packages:
        raise InfrastructureError(
            f"{python}: no jax among its {plural(len(found.packages), 'package')}; "
            "install jax there or select another environment"
        )
    return PathEnvironment(interpreter=python, version=found.version, packages=found.packages)


def find_edited_files(
    python: Path, packages: Iterable[str] = (), largest: float = math.inf
) -> dict[str, tuple[str, ...]]:
    """Return the installed files of an environment that were edited or removed.

    Files that belong to no package are ignored, and so are packages that are installed in
    editable mode.

    Args:
        python: Interpreter of the environment, run isolated from PYTHONPATH and user site.
        packages: Normalised names of the packages to check; every package by default.
        largest: Size in bytes up to which contents are compared; of larger files the sizes are.

    Returns:
        Paths below the folder of installation, by package.

    Raises:
        InfrastructureError: If the interpreter does not run, or prints something else.
    """
    return _run_script(
        python,
        dict[str, tuple[str, ...]],
        _EDITS_SCRIPT,
        " ".join(packages),
        str(largest),
        timeout=FILES_TIMEOUT,
    )


def describe_edits(python: Path) -> str:
    """Describe edits of jax or jaxlib in an environment after their installation.

    An edited environment has the version number of a release and may behave differently. Large
    binaries are compared by size, so that the check takes a fraction of a second.

    Args:
        python: Interpreter of the environment.

    Returns:
        The number of edited files and the first names; empty if all files match their `RECORD`.

    Raises:
        InfrastructureError: If the interpreter does not run, or prints something else.
    """
    edited = find_edited_files(python, _JAX, _LARGEST_COMPARED)
    files = [file for found in edited.values() for file in found]
    if not files:
        return ""
    more = ", ..." if len(files) > _MAX_NAMES else ""
    names = ", ".join(files[:_MAX_NAMES])
    return (
        f"{plural(len(files), 'file')} of {' and '.join(edited)} not as installed "
        f"({names}{more}): the RECORD of the environment does not match"
    )


def _run_script(
    python: Path, kind: type[_T], script: str, *arguments: str, timeout: float | None = None
) -> _T:
    """Run a script in an interpreter and decode the JSON that it prints.

    Args:
        python: The interpreter.
        kind: Type of the decoded JSON.
        script: Python source.
        arguments: Arguments of the script.
        timeout: Seconds; `TIMEOUT` if None.

    Raises:
        InfrastructureError: If it does not start, fails, takes too long or prints something else.
    """
    # Read at each call, not a default: tests shorten it.
    timeout = TIMEOUT if timeout is None else timeout
    try:
        done = subprocess.run(
            # -I: PYTHONPATH and the user's site are those of the caller, not of the environment.
            [python, "-I", "-c", script, *arguments],
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise InfrastructureError(f"{python}: does not run: {describe_os_error(error)}") from error
    except subprocess.TimeoutExpired as error:
        raise InfrastructureError(f"{python}: no answer within {timeout:.0f} s") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        tail = f": {lines[0]}" if lines else ""
        raise InfrastructureError(f"{python}: does not run: exit status {done.returncode}{tail}")
    try:
        return msgspec.json.decode(done.stdout, type=kind)
    except msgspec.DecodeError as error:
        raise InfrastructureError(f"{python}: not a Python interpreter: {error}") from error
