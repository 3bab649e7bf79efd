"""The checkouts of named suites: fetched into the cache once, or the user's own."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.cells.environment_locks import hold_environment, lock_creation, lock_unused
from conformance.cells.secret_masking import mask_text
from conformance.errors import InfrastructureError, UsageError
from conformance.files import MALFORMED, disk_error, write_atomically
from conformance.suites.catalogue.fetching import (
    RepositorySource,
    fetch_whole,
    restore,
    submodules_of,
)
from conformance.suites.catalogue.git import GitError, git
from conformance.suites.catalogue.named import Checkout
from conformance.suites.files import content_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.suites.catalogue.definition import NamedSuite

FOLDER: Final = "checkouts"
"""Folder of the cache that keeps checkouts, each below the name of its suite."""
_MARK: Final = Path(".git", "conformance.json")


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What is noted of a checkout once it is whole.

    Attributes:
        content: Hash of its files.
        url: Where it came from, without secrets.
    """

    content: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Checkouts:
    """The checkouts in a cache.

    Attributes:
        cache: Cache folder.
        tell: Told what takes time, or is not as it was left.
    """

    cache: Path
    tell: Callable[[str], None]

    def folder(self, name: str, revision: str) -> Path:
        """Return where the checkout of a suite lies, or would."""
        return self.cache / FOLDER / name / revision

    def is_fetched(self, name: str, revision: str) -> bool:
        """Say whether a suite is there."""
        return _mark(self.folder(name, revision)) is not None

    def get(self, suite: NamedSuite, *, revision: str = "", url: str = "") -> Checkout:
        """Return the files of a suite as they were fetched, fetched now if they are not there.

        Args:
            suite: The suite.
            revision: Commit, empty for the suite's own.
            url: Where it comes from, empty for what the suite says.

        Raises:
            UsageError: If there is no such commit.
            InfrastructureError: If it cannot be fetched, or the disk refuses.
        """
        source = RepositorySource(
            url=url or suite.definition.url, revision=revision or suite.definition.revision
        )
        folder = self.folder(suite.name, source.revision)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with lock_creation(folder) as held:
                mark = _mark(folder)
                content = content_of(folder) if mark is not None else ""
                if mark is not None and content != mark.content:
                    content = self._restored(suite.name, folder, mark)
                if not content:
                    content = self._fetched(suite.name, source, folder, held)
        except TimeoutError:
            raise InfrastructureError(f"{folder}.lock: held by another run for too long") from None
        except OSError as error:
            raise disk_error(folder, error) from error
        return Checkout(folder=folder, revision=source.revision, content=content)

    def _fetched(self, name: str, source: RepositorySource, folder: Path, held: int) -> str:
        self.tell(f"fetching {name} {source.revision[:12]} from {mask_text(source.url)}")
        fetch_whole(source, folder, holds=(held,))
        content = content_of(folder)
        mark = Mark(content=content, url=mask_text(source.url))
        write_atomically(folder / _MARK, msgspec.json.encode(mark))
        return content

    def _restored(self, name: str, folder: Path, mark: Mark) -> str:
        """Make a checkout that was changed what it was; empty where it is to be fetched anew."""
        with lock_unused(folder) as free:
            if not free:
                raise InfrastructureError(
                    f"{folder}: was changed since it was fetched, and another run uses it; "
                    "wait for that run, or give a checkout of your own: --suite-path DIR"
                )
            try:
                restore(folder)
            except GitError:
                return ""
        if content_of(folder) != mark.content:
            return ""
        self.tell(
            f"{name}: {folder} was changed since it was fetched, and is restored; to try "
            "changes, copy it and give --suite-path DIR"
        )
        return mark.content

    def tidy(self, checkout: Checkout) -> bool:
        """Make a checkout in the cache what it was, unless another run uses it.

        Args:
            checkout: The checkout.

        Returns:
            Whether it is.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        try:
            with lock_creation(checkout.folder), lock_unused(checkout.folder) as free:
                if free:
                    restore(checkout.folder)
        except GitError:
            return False  # the next run finds it changed, and fetches it anew
        except OSError as error:
            raise disk_error(checkout.folder, error) from error
        return free

    @contextmanager
    def held(self, checkout: Checkout) -> Iterator[None]:
        """Keep a checkout from being removed or restored while it is used."""
        if checkout.own:
            yield
            return
        try:
            with hold_environment(checkout.folder):
                yield
        except OSError as error:
            raise disk_error(checkout.folder, error) from error


def stored_checkouts(cache: Path) -> list[Path]:
    """Return the folders of all checkouts in a cache, sorted.

    Args:
        cache: Cache folder.
    """
    return sorted(path for path in (cache / FOLDER).glob("*/*") if path.is_dir())


def _mark(folder: Path) -> Mark | None:
    try:
        return msgspec.json.decode((folder / _MARK).read_bytes(), type=Mark)
    except (OSError, *MALFORMED):
        return None


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
    revision, changed = _state(whole)
    content = content_of(whole)
    return Checkout(folder=whole, revision=revision, changed=changed, own=True, content=content)


def _state(folder: Path) -> tuple[str, bool]:
    """Return the commit that a folder is of, empty if unknown, and whether it was changed."""
    try:
        top, revision = git(["rev-parse", "--show-toplevel", "HEAD"], folder).splitlines()
        if Path(top).resolve() != folder:  # a folder within some other repository
            return "", False
        changed = git(["status", "--porcelain", "--untracked-files=no"], folder)
    except GitError:
        return "", False
    return revision, bool(changed.strip())


def _is_empty(folder: Path) -> bool:
    return not folder.is_dir() or not any(folder.iterdir())
