"""Git repositories for tests: real ones, made of a few files."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    """

    folder: Path
    day: int = 0

    def git(self, *arguments: str) -> str:
        """Run git in the checkout and return its output."""
        date = f"2025-01-{self.day:02}T12:00:00"
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


def make_repository(folder: Path) -> MadeRepository:
    """Return a new repository that serves parts of itself, as public servers do."""
    folder.mkdir(parents=True)
    made = MadeRepository(folder)
    made.git("init", "--quiet")
    for name in ("allowFilter", "allowAnySHA1InWant"):
        made.git("config", f"uploadpack.{name}", "true")
    return made
