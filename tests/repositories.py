"""Git repositories for tests: real ones, made of a few files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.app.context import ProjectContext
from conformance.app.session import Session
from conformance.cells.provision import provision

from .projects import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
}


@dataclass
class MadeRepository:
    """A repository that a test writes.

    Attributes:
        folder: Its checkout.
        day: Day of the last commit; each commit is a day later.
        month: Year and month of all commits.
    """

    folder: Path
    day: int = 0
    month: str = "2025-01"

    def git(self, *arguments: str) -> str:
        """Run git in the checkout and return its output."""
        date = f"{self.month}-{self.day:02}T12:00:00"
        environment = {
            **os.environ, **_IDENTITY, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date,
        }  # fmt: skip
        command = ["git", "-c", "init.defaultBranch=main", *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, message: str, files: Mapping[str, str] | None = None, *, tag: str = "") -> str:
        """Write files and commit everything; return the hash."""
        self.day += 1
        for name, text in (files or {}).items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        if tag:
            self.git("tag", tag)
        return self.git("rev-parse", "HEAD")


def make_repository(folder: Path, month: str = "2025-01") -> MadeRepository:
    """Return a new repository that serves parts of itself, as public servers do."""
    folder.mkdir(parents=True)
    made = MadeRepository(folder, month=month)
    made.git("init", "--quiet")
    for name in ("allowFilter", "allowAnySHA1InWant"):
        made.git("config", f"uploadpack.{name}", "true")
    return made


def find_installed(release: str) -> Path:
    """Return the folder of jax in the environment of a release."""
    context = ProjectContext(ROOT)
    cells, _ = context.select_cells(None, [f"{release}@cpu1"])
    preparation = Session(context=context).prepare(cells)
    lock = preparation.locks[cells[0].id]
    python = provision(cells[0], lock=lock, cache=context.cache).python
    return next(python.parent.parent.glob("lib/python*/site-packages")) / "jax"


def copy_sources(installed: Path, target: Path, jaxlib: str = "") -> None:
    """Copy an installed jax, with the version file that its repository has.

    Args:
        installed: Folder of the installed package.
        target: Folder of the copy.
        jaxlib: Oldest jaxlib that the copy accepts, empty for that of the release.
    """
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(installed, target, ignore=shutil.ignore_patterns("__pycache__"))
    file = target / "version.py"
    # The build of a wheel replaces this line; it is also the oldest jaxlib that jax accepts.
    text = re.sub(
        r"^_release_version.*$", "_release_version = None", file.read_text(), flags=re.MULTILINE
    )
    text = re.sub(r"^(_minimum_jaxlib_version =).*$", r"\1 '0.6.1'", text, flags=re.MULTILINE)
    file.write_text(text)
