"""Git without prompts: commands with a time limit. Messages contain no secrets."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

from conformance.cells.child_processes import CHILD_PROCESSES
from conformance.cells.secret_masking import mask_text
from conformance.errors import InfrastructureError
from conformance.files import describe_os_error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TIMEOUT: Final = 600.0
"""Time limit of a command, in seconds."""
# A git hook sets these variables: the folder alone must select the repository.
_REPOSITORY_VARIABLES: Final = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
    }
)
# Messages are parsed below, so they must be English.
_VARIABLES: Final = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", "LANGUAGE": "en"}
_NOISE: Final = ("hint:", "warning:", "From ", "remote: ", "Cloning ", "Initialized ")


class GitError(InfrastructureError):
    """A git command failed."""


class NoGitError(GitError):
    """Git is not installed."""


def run_git(
    arguments: Sequence[str | os.PathLike[str]],
    folder: Path,
    *,
    stdin: str = "",
    timeout: float = TIMEOUT,
    pass_fds: Sequence[int] = (),
) -> str:
    """Run git and return its output.

    The user's own configuration applies: `url.*.insteadOf`, proxies, credential helpers.

    Args:
        arguments: Command line after `git`.
        folder: Working directory.
        stdin: Text on its standard input.
        timeout: Seconds that it may take.
        pass_fds: Descriptors that it keeps open until it ends, even if this process is killed.

    Raises:
        NoGitError: If git is not installed.
        GitError: If it ends with an error, or takes too long.
    """
    environment = {k: v for k, v in os.environ.items() if k not in _REPOSITORY_VARIABLES}
    # BatchMode: a prompt would wait forever. An ssh program that the user chose is not replaced.
    environment.setdefault("GIT_SSH_COMMAND", environment.get("GIT_SSH", "ssh -o BatchMode=yes"))
    try:
        done = CHILD_PROCESSES.run(
            ["git", *arguments], cwd=folder, env={**environment, **_VARIABLES},
            stdin=stdin, timeout=timeout, pass_fds=pass_fds,
        )  # fmt: skip
    except FileNotFoundError:
        raise NoGitError("git is not installed, or not on PATH; install it") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {arguments[0]}: no end within {timeout:g} s") from None
    except OSError as error:
        raise GitError(f"git: does not run in {folder}: {describe_os_error(error)}") from None
    if done.returncode:
        message = _join_lines(mask_text(done.stderr)) or f"exit status {done.returncode}"
        raise GitError(f"git {arguments[0]}: {message}")
    return done.stdout


def _join_lines(message: str) -> str:
    """Return git's error in one line, without hints and progress."""
    lines = [line.strip() for line in message.splitlines()]
    errors = [line for line in lines if line and not line.startswith(_NOISE)]
    text = "; ".join(errors or lines[-1:])
    return text.removeprefix("fatal: ").replace("; fatal: ", "; ").rstrip(".")
