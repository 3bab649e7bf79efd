"""Commits that the history cites: is each first in the release that its line names.

    python benchmarks/cited_commits.py CLONE [--write]

CLONE is a clone of jax with its tags. Each line of a `changes.toml` that cites a commit is compared
with the first release tag that contains the commit; lines that do not fit are printed. A release
that is newer than the tags of the clone is looked up in its wheel: it has most of the lines that a
commit adds and that the release before lacks. `--write` keeps the releases in `cited_commits.toml`,
which a test holds against the history, without a clone.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from common import ROOT, prepared, setting

from conformance.cells.provision import provision
from conformance.cells.releases import load_releases
from conformance.corpus.behaviour_changes import load_families

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.corpus.behaviour_changes import BehaviourChange

FILE = Path(__file__).with_suffix(".toml")
COMMIT = re.compile(r"jax-ml/jax@([0-9a-f]+)")
TAG = "jax-v"
RELEASES = [*load_releases(ROOT / "matrix").versions]
DIGITS = 12
"""Of a commit that is cited."""
SHORTEST = 20
"""Characters of a line that is looked for in a wheel; shorter ones are in many files."""


def main() -> None:
    """Compare, print, and keep the releases if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    clone = Clone(given.clone)
    cited = [*citations()]
    wrong = 0
    for family, change, commit in cited:
        first = clone.first_release(commit)
        if first != change.release:
            wrong += 1
            print(f"{change.release:8} {commit}  {first or 'in no release':14} {family}")
            print(f"{'':8} {change.summary}")
            print(f"{'':8} {clone.subject(commit)}")
    commits = sorted({commit for _, _, commit in cited})
    newer = sum(not clone.tagged(commit) for commit in commits)
    print(f"{len(cited)} lines cite {len(commits)} commits, {newer} of them newer than the tags")
    print(f"{wrong} lines name another release")
    if given.write:
        lines = [f'{commit} = "{clone.first_release(commit)}"' for commit in commits]
        FILE.write_text("# Written by cited_commits.py --write.\n\n" + "\n".join(lines) + "\n")


def citations() -> Iterator[tuple[str, BehaviourChange, str]]:
    """Yield each line of the history that cites a commit of jax: its family, itself, the commit."""
    for family, said in load_families(ROOT / "cases").items():
        for change in said.change:
            if found := COMMIT.fullmatch(change.source):
                yield family, change, found[1]


class Clone:
    """A clone of jax.

    Args:
        path: Its folder, with or without a work tree.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def first_release(self, commit: str) -> str:
        """Return the first release that contains a commit, empty for none."""
        return self.tagged(commit) or self._in_a_wheel(commit)

    def tagged(self, commit: str) -> str:
        """Return the first release whose tag contains a commit, empty for none."""
        return self._tagged.get(commit[:DIGITS], "")

    @cached_property
    def _tagged(self) -> dict[str, str]:
        """The first release of each commit: `git tag --contains`, for all commits at once."""
        first: dict[str, str] = {}
        for release in self._releases:
            for commit in self._git("rev-list", f"{TAG}{release}").split():
                first.setdefault(commit[:DIGITS], release)
        return first

    @cached_property
    def _releases(self) -> list[str]:
        """Releases of which the clone has a tag, in order."""
        tags = self._git("tag").split()
        return [release for release in RELEASES if f"{TAG}{release}" in tags]

    def subject(self, commit: str) -> str:
        """Return the day and the title of a commit, empty for one that the clone does not have."""
        return self._git("log", "-1", "--format=%cs %s", commit).strip()

    @cache  # noqa: B019 - there is one clone
    def _in_a_wheel(self, commit: str) -> str:
        """Return the newer release that has most lines of a commit that the one before lacks."""
        added = self._added(commit)
        for before, release in pairwise(RELEASES[RELEASES.index(self._releases[-1]) :]):
            new = [(file, lines - module(before, file)) for file, lines in added.items()]
            arrived = sum(len(lines & module(release, file)) for file, lines in new)
            if 2 * arrived > sum(len(lines) for _, lines in new):
                return release
        return ""

    def _added(self, commit: str) -> dict[str, set[str]]:
        """Return the lines that a commit adds to each module of jax."""
        added: dict[str, set[str]] = {}
        file = ""
        for line in self._git("show", "--format=", commit, "--", "jax/*.py").splitlines():
            if line.startswith("+++ b/"):
                file = line.removeprefix("+++ b/")
            elif line.startswith("+") and len(line.strip()) > SHORTEST:
                added.setdefault(file, set()).add(line[1:].strip())
        return added

    def _git(self, *words: str) -> str:
        command = ["git", "-C", str(self._path), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@cache
def module(release: str, file: str) -> frozenset[str]:
    """Return the lines of a module of a release, none for one that it does not have."""
    path = packages(release) / file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return frozenset(line.strip() for line in text.splitlines())


@cache
def packages(release: str) -> Path:
    """Return the folder of packages of a release's environment, made if it is missing."""
    preparation = prepared(f"{release}@cpu8")
    (planned,) = preparation.cells
    lock = preparation.locks[planned.cell.id]
    python = provision(planned.cell, lock=lock, cache=setting().cache).python
    (folder,) = python.parent.parent.glob("lib/python*/site-packages")
    return folder


if __name__ == "__main__":
    main()
