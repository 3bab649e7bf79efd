"""Runs of uv without project settings, progress output, or credentials in messages."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from uv import find_uv_bin

from conformance.cells.child_processes import CHILD_PROCESSES
from conformance.cells.secret_masking import mask_text
from conformance.errors import InfrastructureError
from conformance.files import describe_os_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_SEARCH_LOCK = threading.Lock()
"""`find_uv_bin` reads `sysconfig`, whose lazy initialisation is not thread-safe."""
INDEX_VARIABLE = "CONFORMANCE_INDEX_URL"
# These variables would make the result depend on the host. Variables of the network, the index and
# the package cache are passed: they change the source of a package, not its content.
_NOT_PASSED = frozenset(
    {
        "CONDA_PREFIX",
        "PYTHONHOME",
        "PYTHONPATH",
        "UV_BUILD_CONSTRAINT",
        "UV_COMPILE_BYTECODE",
        "UV_CONSTRAINT",
        "UV_CUSTOM_COMPILE_COMMAND",
        "UV_EXCLUDE",
        "UV_EXCLUDE_NEWER",
        "UV_MANAGED_PYTHON",
        "UV_NO_BINARY",
        "UV_NO_BUILD",
        "UV_NO_MANAGED_PYTHON",
        "UV_OVERRIDE",
        "UV_PRERELEASE",
        "UV_PYTHON",
        "UV_PYTHON_PREFERENCE",
        "UV_REQUIRE_HASHES",
        "UV_RESOLUTION",
        "UV_SYSTEM_PYTHON",
        "UV_TORCH_BACKEND",
        "UV_VENV_CLEAR",
        "UV_VENV_SEED",
        "VIRTUAL_ENV",
    }
)
# Further places in which uv would look for packages.
_INDEXES = frozenset(
    {"UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_INDEX", "UV_INDEX_URL", "UV_NO_INDEX"}
)


class UvError(InfrastructureError):
    """A command of uv failed.

    Attributes:
        stderr: Error output of uv, credentials masked.
    """

    def __init__(self, message: str, stderr: str) -> None:
        super().__init__(message)
        self.stderr = stderr


class NoSolutionError(UvError):
    """The resolver found no solution: a result, not a failure of the host."""


def run_uv(
    arguments: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path,
    stdin: str = "",
    index: str = "",
    pass_fds: Sequence[int] = (),
    defaults: Mapping[str, str] | None = None,
    quiet: bool = True,
) -> str:
    """Run uv and return its standard output.

    Args:
        arguments: Command line after `uv`.
        cwd: Working directory, outside of any project so that no project settings are read.
        stdin: Text on standard input.
        index: The only index to use, instead of those of the environment.
        pass_fds: Descriptors that uv keeps open until it ends, even if this process is killed.
        defaults: Variables that are set unless the environment sets them.
        quiet: Whether uv prints only errors; it does not print lists either.

    Raises:
        NoSolutionError: If the resolver finds no solution.
        UvError: If uv fails otherwise.
        InfrastructureError: If uv cannot be run.
    """
    try:
        done = CHILD_PROCESSES.run(
            [find_uv(), *arguments, "--no-progress", *(["--quiet"] if quiet else [])],
            cwd=cwd,
            env={**(defaults or {}), **make_uv_environment(index)},
            stdin=stdin,
            pass_fds=pass_fds,
        )
    except OSError as error:
        raise InfrastructureError(
            f"uv: does not run in {cwd}: {describe_os_error(error)}"
        ) from error
    if done.returncode == 0:
        return done.stdout
    stderr = mask_text(done.stderr.strip())
    kind = NoSolutionError if "No solution found" in stderr else UvError
    # One line, without the warnings before `error:`.
    text = " ".join(stderr[max(stderr.find("error:"), 0) :].split())
    message = text.removeprefix("error: ").replace(" cause:", ";").rstrip(".")
    raise kind(message or f"uv: exit status {done.returncode}", stderr)


def find_uv() -> str:
    """Return the path of uv."""
    with _SEARCH_LOCK:
        return find_uv_bin()


def make_uv_environment(index: str = "") -> dict[str, str]:
    """Return the environment variables of uv.

    Args:
        index: The only index to use, instead of those of the environment.
    """
    removed = _NOT_PASSED | (_INDEXES if index else frozenset())
    environment = {name: value for name, value in os.environ.items() if name not in removed}
    if index := index or environment.get(INDEX_VARIABLE, ""):
        environment["UV_DEFAULT_INDEX"] = index
    return environment
