"""Asking an interpreter what it is, by running it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import msgspec

from conformance.errors import InfrastructureError, UsageError
from conformance.files import describe_os_error
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TIMEOUT = 10.0
_T = TypeVar("_T")
_VERSION_SCRIPT = """
import json, sys, sysconfig
print(json.dumps({
    "version": "%d.%d.%d" % sys.version_info[:3],
    "implementation": sys.implementation.name,
    "base": getattr(sys, "_base_executable", None) or sys.executable,
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
}))
"""
_PACKAGES_SCRIPT = """
import importlib.metadata, json, re, sys
packages = {}
for dist in importlib.metadata.distributions():
    name = re.sub(r"[-_.]+", "-", dist.metadata["Name"] or "").lower()
    packages.setdefault(name, dist.version)
print(json.dumps({"version": "%d.%d.%d" % sys.version_info[:3], "packages": packages}))
"""


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """Version and build of a Python interpreter.

    Attributes:
        version: `major.minor.patch`.
        implementation: `cpython`, `pypy`.
        base: The interpreter itself when asked through a virtual environment.
        free_threaded: Whether it is built without the global interpreter lock.
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
    """An environment that exists already.

    Attributes:
        interpreter: Its python.
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
    """Run an interpreter and return what it is.

    Args:
        python: Interpreter.

    Returns:
        Its version and build.

    Raises:
        InfrastructureError: If it does not run, or prints something else.
    """
    return _decode(_ask(python, _VERSION_SCRIPT), Interpreter, python)


@cache
def inspect_path_environment(python: Path) -> PathEnvironment:
    """Run the interpreter of an existing environment and return what is installed there.

    Args:
        python: Interpreter of the environment, run isolated from PYTHONPATH and user site.

    Returns:
        The environment's Python and distributions.

    Raises:
        UsageError: If there is no such file.
        InfrastructureError: If the interpreter does not run, or has no jax.
    """
    if not os.path.isfile(python):  # noqa: PTH113 - Path raises for a name that is too long
        raise UsageError(f"path:{python}: no such file, expected the python of an environment")
    found = _decode(_ask(python, _PACKAGES_SCRIPT), _Packages, python)
    if "jax" not in found.packages:
        raise InfrastructureError(
            f"{python}: no jax among its {plural(len(found.packages), 'package')}; "
            "install jax there or select another environment"
        )
    return PathEnvironment(interpreter=python, version=found.version, packages=found.packages)


def _ask(python: Path, script: str) -> bytes:
    try:
        done = subprocess.run(
            [python, "-I", "-c", script], capture_output=True, timeout=TIMEOUT, check=False
        )
    except OSError as error:
        raise InfrastructureError(f"{python}: does not run: {describe_os_error(error)}") from error
    except subprocess.TimeoutExpired as error:
        raise InfrastructureError(f"{python}: no answer within {TIMEOUT:.0f} s") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        tail = f": {said[0]}" if said else ""
        raise InfrastructureError(f"{python}: does not run: exit status {done.returncode}{tail}")
    return done.stdout


def _decode(text: bytes, kind: type[_T], python: Path) -> _T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise InfrastructureError(f"{python}: not a Python interpreter: {error}") from error
