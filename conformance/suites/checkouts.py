"""The checkouts of named suites: fetched into the cache once, or the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.errors import UsageError
from conformance.suites.git import GitError, git
from conformance.suites.named import Checkout

if TYPE_CHECKING:
    from conformance.suites.definition import NamedSuite


@dataclass(frozen=True, slots=True, kw_only=True)
class Submodule:
    """A repository that another one has below itself.

    Attributes:
        path: Where, below the other.
        url: Where it comes from; maybe told relative to the other's.
    """

    path: str
    url: str


def submodules_of(folder: Path) -> tuple[Submodule, ...]:
    """Return the submodules that the files of a repository tell of, by path.

    Args:
        folder: Its checkout.

    Raises:
        GitError: If its `.gitmodules` cannot be read.
    """
    if not (folder / ".gitmodules").is_file():
        return ()
    text = git(["config", "-z", "-f", ".gitmodules", "--get-regexp", "."], folder)
    told: dict[str, dict[str, str]] = {}
    for entry in filter(None, text.split("\0")):
        key, _, value = entry.partition("\n")
        section, _, name = key.rpartition(".")
        told.setdefault(section, {})[name] = value
    found = (one for one in told.values() if {"path", "url"} <= one.keys())
    return tuple(sorted((Submodule(path=o["path"], url=o["url"]) for o in found), key=_path))


def _path(one: Submodule) -> str:
    return one.path


def own_checkout(folder: Path, suite: NamedSuite) -> Checkout:
    """Return a checkout of the user's own, as it is.

    Args:
        folder: Where it lies.
        suite: The suite that it is of.

    Raises:
        UsageError: If it is none of that suite, or a submodule is missing in it.
    """
    given = suite.definition
    where = f"--suite-path {folder}"
    if not folder.is_dir():
        raise UsageError(f"{where}: no such folder, expected a checkout of {given.url}")
    for path in given.paths:
        if not (folder / path).exists():
            raise UsageError(f"{where}: has no {path}, expected a checkout of {given.url}")
    whole = folder.resolve()
    try:
        missing = [one.path for one in submodules_of(whole) if _is_empty(whole / one.path)]
    except GitError:
        missing = []  # without git the suite itself says what it lacks
    if missing:
        raise UsageError(
            f"{where}: submodule {', '.join(missing)} is missing; "
            f"git -C {folder} submodule update --init"
        )
    return Checkout(folder=whole, own=True, **_state(whole))


def _state(folder: Path) -> dict[str, str | bool]:
    """Return the commit that a folder is of, and whether it was changed; nothing if unknown."""
    try:
        top, revision = git(["rev-parse", "--show-toplevel", "HEAD"], folder).splitlines()
        if Path(top).resolve() != folder:  # a folder within some other repository
            return {}
        changed = git(["status", "--porcelain", "--untracked-files=no"], folder)
    except GitError:
        return {}
    return {"revision": revision, "changed": bool(changed.strip())}


def _is_empty(folder: Path) -> bool:
    return not folder.is_dir() or not any(folder.iterdir())
