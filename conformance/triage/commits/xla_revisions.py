"""The revisions of XLA that jax's own history pins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from conformance.cells.repository import Repository
    from conformance.cells.source_commit import SourceCommit

PINS: Final = ("third_party/xla/revision.bzl", "third_party/xla/workspace.bzl")
"""Files that pin the revision: the first from 0.7.0, the second before."""
JAXLIB: Final = "jaxlib"
"""Folder with the sources of jaxlib in the repository of jax."""
XLA_URL: Final = "https://github.com/openxla/xla"
_PIN: Final = re.compile(r'^XLA_COMMIT *= *"([0-9a-f]{40})"', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class XlaUpdate:
    """A commit of jax that pins another revision of XLA.

    Attributes:
        commit: The commit.
        revision: The revision, a whole hash.
    """

    commit: SourceCommit
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxlibRange:
    """The changes between the jaxlib of two releases.

    Attributes:
        before: Revision of XLA of the older release, empty if it is unknown.
        after: Revision of XLA of the newer release, empty if it is unknown.
        updates: The commits between the two that pin another revision, oldest first.
        own: The commits between the two that change the sources of jaxlib itself, oldest first.
    """

    before: str
    after: str
    updates: tuple[XlaUpdate, ...]
    own: tuple[SourceCommit, ...]

    @property
    def url(self) -> str:
        """The commits of XLA between both revisions, empty if a revision is unknown."""
        if not (self.before and self.after) or self.before == self.after:
            return ""
        return f"{XLA_URL}/compare/{self.before[:12]}...{self.after[:12]}"


def find_jaxlib_range(repository: Repository, older: str, newer: str) -> JaxlibRange:
    """Return the changes between the jaxlib of two releases of jax.

    Args:
        repository: Repository of jax.
        older: Commit of the older release.
        newer: Commit of the newer release.

    Raises:
        GitError: If git fails.
    """
    before = revision = _read_revision(repository, older)
    updates = []
    for commit in repository.list_commits(older, newer, PINS):
        found = _read_revision(repository, commit.hash)
        # Other lines of the files change, too.
        if found != revision:
            updates.append(XlaUpdate(commit=commit, revision=found))
            revision = found
    return JaxlibRange(
        before=before, after=_read_revision(repository, newer), updates=tuple(updates),
        own=tuple(repository.list_commits(older, newer, [JAXLIB])),
    )  # fmt: skip


def _read_revision(repository: Repository, commit: str) -> str:
    for path in PINS:
        if (text := repository.read_file(commit, path)) and (found := _PIN.search(text)):
            return found[1]
    return ""
