"""Running uv, always alike: no project settings, no chatter, no credentials in messages."""

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

_LOOKING = threading.Lock()
"""Held while uv is looked for: Python finds out about itself then, which two threads may not do."""
INDEX_VARIABLE = "CONFORMANCE_INDEX_URL"
# What would make the same request come out otherwise here than elsewhere. Settings about the
# network, the index and the package cache stay: they say from where, not what.
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
# Where else uv would look.
_INDEXES = frozenset(
    {"UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_INDEX", "UV_INDEX_URL", "UV_NO_INDEX"}
)


class UvError(InfrastructureError):
    """Uv did not do what it was asked.

    Attributes:
        stderr: What uv said, credentials masked.
    """

    def __init__(self, message: str, stderr: str) -> None:
        super().__init__(message)
        self.stderr = stderr


class NoSolutionError(UvError):
    """The resolver refuses a set of requirements: an answer, not a failure."""


def run_uv(
    arguments: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path,
    stdin: str = "",
    index: str = "",
    holds: Sequence[int] = (),
    defaults: Mapping[str, str] | None = None,
    quiet: bool = True,
) -> str:
    """Run uv and return what it prints.

    Args:
        arguments: Command line after `uv`.
        cwd: Folder to run in; outside of any project, lest its settings be read.
        stdin: Text on standard input.
        index: The only index to look in, instead of those that the environment chooses.
        holds: Descriptors that it keeps open until it ends, also where this process is killed.
        defaults: Variables that it gets unless the environment sets them.
        quiet: Whether it prints nothing but errors; lists are not printed then either.

    Returns:
        Standard output.

    Raises:
        NoSolutionError: If the resolver finds no solution.
        UvError: If uv ends with another error.
        InfrastructureError: If it cannot be run.
    """
    program = uv_program()
    try:
        done = CHILD_PROCESSES.run(
            [program, *arguments, "--no-progress", *(["--quiet"] if quiet else [])],
            cwd=cwd,
            env={**(defaults or {}), **uv_environment(index)},
            stdin=stdin,
            holds=holds,
        )
    except OSError as error:
        raise InfrastructureError(
            f"uv: does not run in {cwd}: {describe_os_error(error)}"
        ) from error
    if done.returncode == 0:
        return done.stdout
    said = mask_text(done.stderr.strip())
    kind = NoSolutionError if "No solution found" in said else UvError
    # In one line, from its `error:` on.
    words = " ".join(said[max(said.find("error:"), 0) :].split())
    message = words.removeprefix("error: ").replace(" cause:", ";").rstrip(".")
    raise kind(message or f"uv: exit status {done.returncode}", said)


def uv_program() -> str:
    """Return the path of uv."""
    with _LOOKING:
        return find_uv_bin()


def uv_environment(index: str = "") -> dict[str, str]:
    """Return the environment that uv runs in.

    Args:
        index: The only index to look in, instead of those that the environment chooses.
    """
    left_out = _NOT_PASSED | (_INDEXES if index else frozenset())
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    if index := index or environment.get(INDEX_VARIABLE, ""):
        environment["UV_DEFAULT_INDEX"] = index
    return environment
