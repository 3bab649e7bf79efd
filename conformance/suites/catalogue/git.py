"""Running git: no prompts, no chatter, a time limit, no secrets in messages."""

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
"""Seconds that one command may take."""
# Whose repository it is, is said by the folder alone: within a hook, git says otherwise.
_NOT_PASSED: Final = frozenset(
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
_SPOKEN: Final = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", "LANGUAGE": "en"}
_NOISE: Final = ("hint:", "warning:", "From ", "remote: ", "Cloning ", "Initialized ")


class GitError(InfrastructureError):
    """Git did not do what it was asked."""


class NoGitError(GitError):
    """There is no git here."""


def git(
    arguments: Sequence[str | os.PathLike[str]],
    folder: Path,
    *,
    timeout: float = TIMEOUT,
    holds: Sequence[int] = (),
) -> str:
    """Run git and return what it prints.

    The user's own configuration counts: `url.*.insteadOf`, proxies, credential helpers.

    Args:
        arguments: Command line after `git`.
        folder: Working directory.
        timeout: Seconds that it may take.
        holds: Descriptors that it keeps open until it ends, also where this process is killed.

    Raises:
        NoGitError: If there is no git.
        GitError: If it ends with an error, or takes too long.
    """
    environment = {k: v for k, v in os.environ.items() if k not in _NOT_PASSED}
    # Nobody is there who could be asked; a user's own way of going by ssh stays.
    environment.setdefault("GIT_SSH_COMMAND", environment.get("GIT_SSH", "ssh -o BatchMode=yes"))
    command = ["git", *arguments]
    try:
        done = CHILD_PROCESSES.run(
            command, cwd=folder, env={**environment, **_SPOKEN}, timeout=timeout, holds=holds
        )
    except FileNotFoundError:
        raise NoGitError(
            "git is not installed, or not on PATH; install it, or give a checkout: --suite-path DIR"
        ) from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {arguments[0]}: no end within {timeout:g} s") from None
    except OSError as error:
        raise GitError(f"git: does not run in {folder}: {describe_os_error(error)}") from None
    if done.returncode:
        said = _one_line(mask_text(done.stderr)) or f"exit status {done.returncode}"
        raise GitError(f"git {arguments[0]}: {said}")
    return done.stdout


def _one_line(said: str) -> str:
    """Return git's error in one line, without what it says by the way."""
    lines = [line.strip() for line in said.splitlines()]
    kept = [line for line in lines if line and not line.startswith(_NOISE)]
    words = "; ".join(kept or lines[-1:])
    return words.removeprefix("fatal: ").replace("; fatal: ", "; ").rstrip(".")
