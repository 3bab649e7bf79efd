"""Commits made beside a repository, as patches for `git am`: neither tree nor index is touched."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.errors import UsageError
from conformance.files import describe_os_error
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PLAIN: Final = (
    "-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "-c", "core.quotePath=true",
    "-c", "commit.gpgSign=false", "-c", "format.signOff=false", "-c", "format.useAutoBase=false",
    "-c", "format.subjectPrefix=PATCH", "-c", "diff.renames=false",
)  # fmt: skip
"""What a user's configuration would otherwise say of a patch."""
_ANYBODY: Final = "conformance review <conformance@localhost>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit to be made.

    Attributes:
        message: Its message.
        files: Content by path; None for a file that goes.
    """

    message: str
    files: Mapping[Path, bytes | None]


def root_of(folder: Path) -> Path:
    """Return the root of the repository that holds a folder.

    Raises:
        UsageError: If it is in none.
    """
    said = _run(["rev-parse", "--show-toplevel"], folder)
    return Path(said.decode().rstrip("\n"))


def author(folder: Path) -> str:
    """Return who commits in a folder, `Name <address>`.

    Args:
        folder: A folder of a repository, or any other.
    """
    try:
        told = _run(["var", "GIT_AUTHOR_IDENT"], folder).decode("utf-8", "replace")
    except UsageError:
        return _ANYBODY
    return told.rpartition(">")[0] + ">"


def tracked(root: Path, folders: Sequence[Path]) -> set[Path]:
    """Return the files of the last commit below some folders.

    Args:
        root: Root of the repository.
        folders: The folders.
    """
    if not folders:
        return set()
    names = [str(_below(root, folder)) for folder in folders]
    listed = _run(["ls-tree", "-r", "-z", "--name-only", "HEAD", "--", *names], root)
    return {root / os.fsdecode(name) for name in listed.split(b"\0") if name}


def uncommitted(root: Path, files: Sequence[Path]) -> list[str]:
    """Return which of some files, or of what is below folders, are not as in the last commit.

    Args:
        root: Root of the repository.
        files: Files and folders.
    """
    if not files:
        return []
    options = ["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"]
    said = _run([*options, "--", *(f":(literal){_below(root, file)}" for file in files)], root)
    return [os.fsdecode(entry[3:]) for entry in said.split(b"\0") if entry]


def _below(root: Path, path: Path) -> Path:
    return path.resolve().relative_to(root.resolve())


def patches(root: Path, commits: Sequence[Commit], when: str) -> bytes:
    """Return commits on top of the last one as a mailbox for `git am`.

    Args:
        root: Root of the repository.
        commits: The commits, in order.
        when: Their date, ISO 8601.

    Raises:
        UsageError: If git is missing or refuses.
    """
    with temporary_folder("review") as folder:
        objects = _run(["rev-parse", "--git-path", "objects"], root).decode().strip()
        env = {
            "GIT_INDEX_FILE": str(folder / "index"),
            "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _alternates(root / objects),
            **_identity(author(root), when),
        }
        (folder / "objects").mkdir()
        base = parent = _run(["rev-parse", "HEAD"], root).decode().strip()
        _run(["read-tree", base], root, env=env)
        for commit in commits:
            parent = _committed(root, commit, parent, env)
        return _run(
            [
                *_PLAIN, "format-patch", "--stdout", "--binary", "--full-index", "--no-color",
                "--no-ext-diff", "--no-textconv", "--no-stat", "--no-signature", "--no-thread",
                "--no-notes", "--no-cover-letter", "--no-attach", "--src-prefix=a/",
                "--dst-prefix=b/", f"{base}..{parent}",
            ],
            root, env=env,
        )  # fmt: skip


def _alternates(objects: Path) -> str:
    quoted = str(objects.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    inherited = os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")
    return os.pathsep.join([f'"{quoted}"', *([inherited] if inherited else [])])


def _identity(who: str, when: str) -> dict[str, str]:
    name, _, address = who.partition(" <")
    told = {"NAME": name, "EMAIL": address.removesuffix(">"), "DATE": when}
    return {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in told.items()}


def _committed(root: Path, commit: Commit, parent: str, env: Mapping[str, str]) -> str:
    """Return the name of a new commit, on top of what the index holds."""
    entries = []
    for file, data in sorted(commit.files.items()):
        name = os.fsencode(str(_below(root, file)))
        if data is None:
            entries.append(b"0 " + b"0" * len(parent) + b"\t" + name + b"\0")
            continue
        mode = b"100755" if file.exists() and os.access(file, os.X_OK) else b"100644"
        hashed = _run(
            ["hash-object", "-w", "--stdin", "--path", os.fsdecode(name)], root, data, env
        )
        entries.append(mode + b" " + hashed.strip() + b"\t" + name + b"\0")
    _run(["update-index", "-z", "--index-info"], root, b"".join(entries), env)
    tree = _run(["write-tree"], root, env=env).decode().strip()
    made = _run(["commit-tree", tree, "-p", parent], root, commit.message.encode(), env)
    return made.decode().strip()


def _run(
    arguments: Sequence[str], folder: Path, data: bytes = b"", env: Mapping[str, str] | None = None
) -> bytes:
    try:
        done = subprocess.run(
            ["git", *arguments], input=data, cwd=folder, capture_output=True, check=False,
            env={**os.environ, "LC_ALL": "C", **(env or {})},
        )  # fmt: skip
    except OSError as error:
        raise UsageError(
            f"git: {describe_os_error(error)}; patches are made by it, install it"
        ) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        told = said[0].lower() if said else f"exit status {done.returncode}"
        raise UsageError(f"git {arguments[0]} in {folder}: {told}")
    return done.stdout
