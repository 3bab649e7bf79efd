"""Git repositories of packages: their clones in the cache, release tags, history and files.

A folder is read where it is. A URL is cloned once into the cache: bare and without the contents of
files, which git fetches when they are needed. The clone is fetched again if it lacks a revision.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from conformance.cells.environment_locks import provide_folder
from conformance.cells.git import GitError, NoGitError, run_git
from conformance.cells.secret_masking import mask_text
from conformance.cells.source_commit import SHORT, SourceCommit
from conformance.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FOLDER: Final = "repositories"
"""Folder of the cache with the clones."""
PATIENCE: Final = 3600.0
"""Seconds to clone a repository with a long history."""
PARTIAL: Final = "--filter=blob:none"
"""Option of a clone without the contents of files."""
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+:", re.IGNORECASE)
_SEPARATOR: Final = "\x1e"
_FORMAT: Final = f"--format=%H%x00%cs%x00%s%x00%B{_SEPARATOR}"
_CORRUPT: Final = re.compile(
    r"corrupt|bad object|bad tree object|unable to (read|parse|unpack)|could not (read|parse)|"
    r"not a git repository|loose object|packfile|pack has|inflate|invalid object|object file|"
    r"missing (blob|tree|commit)|not a valid object",
    re.IGNORECASE,
)
"""Messages of git about a repository whose files are damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository with the history of a package.

    Attributes:
        folder: Its folder: a checkout, or a bare repository.
        url: URL for links and messages, without secrets; the folder if it has no URL.
        is_clone: Whether it is a clone in the cache, which may be fetched and made again.
    """

    folder: Path
    url: str
    is_clone: bool = False

    def find_commit(self, revision: str) -> str | None:
        """Return the whole hash of a revision, None if the repository lacks it.

        Args:
            revision: A commit, a tag or a branch.
        """
        try:
            return self._read("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").strip()
        except GitError as error:
            # `--quiet` leaves no message about an unknown revision.
            if "exit status" in str(error):
                return None
            raise

    def require_commit(self, revisions: Iterable[str], about: str) -> str:
        """Return the whole hash of the first known revision; a clone is fetched if it has none.

        Args:
            revisions: The revisions.
            about: Name of the release or the commit in the message.

        Raises:
            UsageError: If the repository has none of them.
            InfrastructureError: If it cannot be read or fetched.
        """
        names = list(revisions)
        if (found := self._find_first(names)) is None and self.is_clone:
            _fetch(self.folder, self.url)
            found = self._find_first(names)
        if found is None:
            advice = "" if self.is_clone else f"; fetch it: git -C {self.folder} fetch --tags"
            raise UsageError(
                f"{self.url}: has no {about}, expected one of {', '.join(names)}{advice}"
            )
        return found

    def _find_first(self, revisions: Iterable[str]) -> str | None:
        return next(filter(None, map(self.find_commit, revisions)), None)

    def list_commits(self, older: str, newer: str, paths: Sequence[str] = ()) -> list[SourceCommit]:
        """Return the commits after one revision up to another, along first parents, oldest first.

        Release tags may be on release branches: the list then leads from the point at which the
        branch of the older release began to the newer release.

        Args:
            older: Revision before the first commit.
            newer: The last commit.
            paths: Files and folders; only commits that change one of them are listed. Empty for
                all commits.

        Raises:
            GitError: If git fails.
        """
        order = ["--first-parent", "--reverse"]
        found = list(self._parse(self._read("log", *order, _FORMAT, f"{older}..{newer}")))
        if not paths or not found:
            return found
        # Not by `git log -- PATH`: it leaves out the first commit of a range if that is a merge
        # whose second parent has the same files.
        names = [older, *(commit.hash for commit in found)]
        contents = self._find_contents(names, paths)
        return [
            commit
            for commit, before, after in zip(found, contents, contents[1:], strict=False)
            if before != after
        ]

    def _find_contents(self, commits: Sequence[str], paths: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the hashes of files and folders at some commits; empty where one is missing."""
        queries = "".join(f"{commit}:{path}\n" for commit in commits for path in paths)
        answers = self._read("cat-file", "--batch-check=%(objectname)", stdin=queries).splitlines()
        hashes = ["" if answer.endswith(" missing") else answer for answer in answers]
        size = len(paths)
        return [tuple(hashes[n : n + size]) for n in range(0, len(hashes), size)]

    def read_commit(self, revision: str) -> SourceCommit:
        """Return one commit.

        Args:
            revision: The commit.

        Raises:
            GitError: If git fails.
        """
        (commit,) = self._parse(self._read("log", "-1", _FORMAT, revision))
        return commit

    def find_merge_base(self, one: str, other: str) -> str:
        """Return the commit at which two revisions part.

        Raises:
            GitError: If they have none, or git fails.
        """
        return self._read("merge-base", one, other).strip()

    def list_changed_files(self, commit: str) -> list[str]:
        """Return the files that a commit changes, against its first parent.

        Args:
            commit: The commit.
        """
        options = ["diff-tree", "-r", "-z", "--root", "--no-commit-id", "--name-only", "-m"]
        found = self._read(*options, "--first-parent", commit)
        return [name for name in found.split("\0") if name]

    def list_files(self, commit: str, folder: str) -> dict[str, str]:
        """Return the files of a folder at a commit: the hash of each content, by path in it.

        Args:
            commit: The commit.
            folder: The folder within the repository.
        """
        entries = self._read("ls-tree", "-r", "-z", f"{commit}:{folder}").split("\0")
        parts = [entry.partition("\t") for entry in entries if entry]
        # Submodules have no content here.
        return {path: head.split()[2] for head, _, path in parts if head.split()[1] == "blob"}

    def has_folder(self, commit: str, folder: str) -> bool:
        """Say whether a commit has a folder.

        Args:
            commit: The commit.
            folder: The folder within the repository.
        """
        return self._read("ls-tree", "-d", commit, "--", folder).strip() != ""

    def read_file(self, commit: str, path: str) -> str | None:
        """Return the text of a file at a commit, None if the commit has no such file.

        Args:
            commit: The commit.
            path: Path within the repository.
        """
        if not self._read("ls-tree", commit, "--", path).strip():
            return None
        return self._read("show", f"{commit}:{path}")

    def export(self, commit: str, folder: str, files: Mapping[str, str], target: Path) -> None:
        """Write files of a folder to a tar archive.

        Args:
            commit: The commit.
            folder: The folder within the repository.
            files: Hash of the content of each file, by path in the folder.
            target: The archive.

        Raises:
            InfrastructureError: If git fails, e.g. as the contents cannot be fetched.
        """
        tree = f"{commit}:{folder}"
        if self.is_clone:
            self._fetch_contents(tree, files)
        # The tree of the folder: of that of the commit git would fetch other files, too.
        self._read("archive", "--format=tar", f"--output={target}", tree, "--", *files)

    def _fetch_contents(self, tree: str, files: Mapping[str, str]) -> None:
        """Fetch the contents that a clone lacks, together: `git archive` fetches each alone."""
        show = ["--objects", "--missing=print", "--no-object-names"]
        listed = self._read("rev-list", *show, tree).splitlines()
        absent = {line[1:] for line in listed if line.startswith("?")}
        if missing := sorted(absent.intersection(files.values())):
            _fetch(self.folder, self.url, contents=missing)

    def _read(self, *arguments: str, stdin: str = "") -> str:
        """Run git in the repository; a damaged clone is made again."""
        try:
            return run_git(arguments, self.folder, stdin=stdin)
        except NoGitError:
            raise
        except GitError as error:
            if not self.is_clone or not _CORRUPT.search(str(error)):
                raise
        _ensure_clone(self.folder, self.url, again=True)
        return run_git(arguments, self.folder, stdin=stdin)

    def _parse(self, text: str) -> Iterator[SourceCommit]:
        for entry in text.split(_SEPARATOR):
            if entry.strip():
                fields = entry.lstrip("\n").split("\0", 3)
                yield SourceCommit(
                    hash=fields[0], date=fields[1], title=fields[2], message=fields[3]
                )


def open_repository(location: str, cache: Path) -> Repository:
    """Return a repository: a folder as it is, a URL as its clone in the cache.

    Args:
        location: Path or URL.
        cache: Cache folder.

    Raises:
        UsageError: If it is no repository, a shallow clone, or a URL with a password.
        InfrastructureError: If it cannot be cloned, or the disk refuses.
    """
    path = Path(location).expanduser()
    if _URL.match(location) is None or path.exists():
        return _open_folder(path)
    if not location.startswith("file:") and urlsplit(location).password:
        raise UsageError(
            f"{mask_text(location)}: has a password, expected a URL without; "
            "a credential helper of git gives it"
        )
    folder = cache / FOLDER / f"{sha256(location.encode()).hexdigest()[:SHORT]}.git"
    _ensure_clone(folder, location)
    return Repository(folder=folder, url=location.removesuffix(".git"), is_clone=True)


def _open_folder(path: Path) -> Repository:
    if not path.is_dir():
        raise UsageError(f"{path}: no such folder, expected a repository, or its URL")
    try:
        is_shallow = run_git(["rev-parse", "--is-shallow-repository"], path).strip()
    except NoGitError:
        raise
    except GitError as error:
        raise UsageError(f"{path}: is no git repository: {error}; expected a clone") from None
    if is_shallow == "true":
        raise UsageError(
            f"{path}: is a shallow clone, expected one with the whole history: "
            f"git -C {path} fetch --unshallow --tags"
        )
    try:
        url = mask_text(run_git(["config", "--get", "remote.origin.url"], path).strip())
    except GitError:  # a repository without a remote
        url = str(path)
    return Repository(folder=path, url=url.removesuffix(".git"))


def _ensure_clone(folder: Path, url: str, *, again: bool = False) -> None:
    """Clone a repository into the cache, unless an intact clone is there.

    Args:
        folder: Folder of the clone.
        url: URL of the repository.
        again: Whether a clone that is there is damaged.
    """
    with provide_folder(folder, PATIENCE) as descriptor:
        if folder.is_dir() and not again and _is_intact(folder):
            return
        part = folder.with_name(f"{folder.name}.part")
        for path in (part, folder):  # of a clone that was killed, or is damaged
            shutil.rmtree(path, ignore_errors=True)
        _clone(url, part, descriptor)
        # A rename is atomic: a killed clone leaves no folder that looks complete.
        part.rename(folder)


def _is_intact(folder: Path) -> bool:
    try:
        run_git(["rev-parse", "--verify", "HEAD^{tree}"], folder)
    except NoGitError:
        raise
    except GitError:
        return False
    return True


def _clone(url: str, folder: Path, descriptor: int) -> None:
    # `--no-local`: a local URL is served like a remote one, so that contents may be left out.
    how = ["--quiet", "--bare", "--no-local", PARTIAL, "--template="]
    try:
        run_git(
            ["clone", *how, "--", url, str(folder)], folder.parent,
            timeout=PATIENCE, pass_fds=(descriptor,),
        )  # fmt: skip
    except NoGitError:
        raise
    except GitError as error:
        raise _make_fetch_error(url, error) from None


def _fetch(folder: Path, url: str, contents: Sequence[str] = ()) -> None:
    """Fetch new commits and tags of a clone, or the contents of files.

    Args:
        folder: The clone.
        url: Its URL, for the message.
        contents: Hashes of contents to fetch; empty for commits and tags.
    """
    refs = ["--stdin"] if contents else ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]
    how = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", PARTIAL]
    try:
        with provide_folder(folder, PATIENCE) as descriptor:
            # Locks of a fetch that was killed: this one has the right to write now.
            for stale in [*folder.glob("*.lock"), *folder.glob("refs/**/*.lock")]:
                stale.unlink(missing_ok=True)
            run_git(
                ["fetch", *how, "origin", *refs], folder, stdin="\n".join(contents),
                timeout=PATIENCE, pass_fds=(descriptor,),
            )  # fmt: skip
    except NoGitError:
        raise
    except GitError as error:
        raise _make_fetch_error(url, error) from None


def _make_fetch_error(url: str, error: GitError) -> InfrastructureError:
    return InfrastructureError(
        f"{mask_text(url)}: cannot be fetched: {error}; check the network and the URL, or name a "
        "clone of your own"
    )
