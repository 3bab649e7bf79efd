"""The checkouts of named suites: fetched into the cache once, or the user's own."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.cells.environment_locks import (
    hold_environment,
    lock_creation,
    lock_unused,
    provide_folder,
)
from conformance.cells.git import GitError, run_git
from conformance.cells.secret_masking import mask_text
from conformance.errors import InfrastructureError, UsageError
from conformance.files import MALFORMED, disk_error, write_atomically
from conformance.suites.catalogue.git import (
    RepositorySource,
    fetch_repository,
    read_submodules,
    restore_checkout,
)
from conformance.suites.files import hash_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.suites.catalogue.definition import NamedSuite

FOLDER: Final = "checkouts"
"""Folder of checkouts within the cache, each below the name of its suite."""
# In .git: neither the hash of the files nor `git clean` includes it.
_MARK: Final = Path(".git", "conformance.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The files of a named suite.

    Attributes:
        folder: Their folder, absolute.
        revision: Their commit, empty if that is unknown.
        changed: Whether they differ from the commit.
        own: Whether they are the user's own, and not in the cache.
        content: Hash of the files.
    """

    folder: Path
    revision: str = ""
    changed: bool = False
    own: bool = False
    content: str

    @property
    def label(self) -> str:
        """The commit, marked if the files differ from it; empty if it is unknown."""
        return f"{self.revision}-changed" if self.changed else self.revision


class CheckoutMark(msgspec.Struct, frozen=True, kw_only=True):
    """The file that marks a checkout as complete.

    Attributes:
        content: Hash of its files.
        url: Its source, without secrets.
    """

    content: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Checkouts:
    """The checkouts in a cache.

    Attributes:
        cache: Cache folder.
        inform: Receives a line about a fetch, or about a checkout that was changed.
    """

    cache: Path
    inform: Callable[[str], None]

    def folder(self, name: str, revision: str) -> Path:
        """Return the folder of the checkout of a suite, which may not exist."""
        return self.cache / FOLDER / name / revision

    def is_fetched(self, name: str, revision: str) -> bool:
        """Say whether the cache has a complete checkout of a suite."""
        return _read_mark(self.folder(name, revision)) is not None

    def get(self, suite: NamedSuite, *, revision: str = "", url: str = "") -> Checkout:
        """Return the files of a suite as they were fetched; fetch them if they are missing.

        Args:
            suite: Named suite.
            revision: Commit, empty for the suite's own.
            url: Source, empty for the suite's own.

        Raises:
            UsageError: If there is no such commit.
            InfrastructureError: If it cannot be fetched, or the disk refuses.
        """
        source = RepositorySource(
            url=url or suite.definition.url, revision=revision or suite.definition.revision
        )
        folder = self.folder(suite.name, source.revision)
        with provide_folder(folder) as descriptor:
            mark = _read_mark(folder)
            content = "" if mark is None else self._ensure_unchanged(suite.name, folder, mark)
            content = content or self._fetch(suite.name, source, folder, descriptor)
        return Checkout(folder=folder, revision=source.revision, content=content)

    def _fetch(self, name: str, source: RepositorySource, folder: Path, descriptor: int) -> str:
        self.inform(f"fetching {name} {source.revision[:12]} from {mask_text(source.url)}")
        fetch_repository(source, folder, pass_fds=(descriptor,))
        content = hash_folder(folder)
        # Written last: a checkout without it is not complete.
        mark = CheckoutMark(content=content, url=mask_text(source.url))
        write_atomically(folder / _MARK, msgspec.json.encode(mark))
        return content

    def _ensure_unchanged(self, name: str, folder: Path, mark: CheckoutMark) -> str:
        """Restore a checkout if it was changed; return the empty text if that fails."""
        # At each use: the tests of an earlier run may have changed files.
        if hash_folder(folder) == mark.content:
            return mark.content
        with lock_unused(folder) as free:
            if not free:
                raise InfrastructureError(
                    f"{folder}: was changed since it was fetched, and another run uses it; "
                    "wait for that run, or give a checkout of your own: --suite-path DIR"
                )
            try:
                restore_checkout(folder)
            except GitError:
                return ""
        if hash_folder(folder) != mark.content:
            return ""
        self.inform(
            f"{name}: {folder} was changed since it was fetched, and is restored; to try "
            "changes, copy it and give --suite-path DIR"
        )
        return mark.content

    def restore(self, checkout: Checkout) -> bool:
        """Restore a checkout in the cache, unless another run uses it.

        Args:
            checkout: Checkout in the cache.

        Returns:
            Whether it is restored.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        try:
            # In the order of `get`, so that two runs never wait for each other.
            with lock_creation(checkout.folder), lock_unused(checkout.folder) as free:
                if free:
                    restore_checkout(checkout.folder)
        except GitError:
            return False  # the next run finds that it was changed, and fetches it again
        except OSError as error:
            raise disk_error(checkout.folder, error) from error
        return free

    @contextmanager
    def hold(self, checkout: Checkout) -> Iterator[None]:
        """Keep a checkout from being removed or restored while it is used."""
        if checkout.own:
            yield
            return
        try:
            with hold_environment(checkout.folder):
                yield
        except OSError as error:
            raise disk_error(checkout.folder, error) from error


def list_checkouts(cache: Path) -> list[Path]:
    """Return the folders of all checkouts in a cache, sorted.

    Args:
        cache: Cache folder.
    """
    return sorted(path for path in (cache / FOLDER).glob("*/*") if path.is_dir())


def _read_mark(folder: Path) -> CheckoutMark | None:
    try:
        return msgspec.json.decode((folder / _MARK).read_bytes(), type=CheckoutMark)
    except (OSError, *MALFORMED):
        return None


def inspect_own_checkout(folder: Path, suite: NamedSuite) -> Checkout:
    """Return a checkout of the user's own, unmodified.

    Args:
        folder: Folder of the checkout.
        suite: Named suite that it must be of.

    Raises:
        UsageError: If the folder is not a checkout of the suite, or lacks a submodule.
    """
    definition = suite.definition
    where = f"--suite-path {folder}"
    if not folder.is_dir():
        raise UsageError(f"{where}: no such folder, expected a checkout of {definition.url}")
    for path in definition.paths:
        if not (folder / path).exists():
            raise UsageError(f"{where}: has no {path}, expected a checkout of {definition.url}")
    whole = folder.resolve()
    try:
        missing = [path for path in read_submodules(whole) if _is_empty(whole / path)]
    except GitError:
        missing = []  # without git, the suite itself reports missing files
    if missing:
        raise UsageError(
            f"{where}: submodule {', '.join(missing)} is missing; "
            f"git -C {folder} submodule update --init"
        )
    revision, changed = _find_revision(whole)
    return Checkout(
        folder=whole, revision=revision, changed=changed, own=True, content=hash_folder(whole)
    )


def _find_revision(folder: Path) -> tuple[str, bool]:
    """Return the commit of a folder, empty if unknown, and whether its files were changed."""
    try:
        top, revision = run_git(["rev-parse", "--show-toplevel", "HEAD"], folder).splitlines()
        if Path(top).resolve() != folder:  # a folder within some other repository
            return "", False
        # Untracked files, e.g. bytecode and the cache of pytest, are no change of the suite.
        changed = run_git(["status", "--porcelain", "--untracked-files=no"], folder)
    except GitError:
        return "", False
    return revision, bool(changed.strip())


def _is_empty(folder: Path) -> bool:
    return not folder.is_dir() or not any(folder.iterdir())
