"""Checks that each commit cited by the history is first in the release of its line.

    python benchmarks/cited_commits.py CLONE [--write]

CLONE is a clone of jax with its tags. Each line of a `changes.toml` that cites a commit is compared
with the first release tag that contains the commit; lines that disagree are printed. A commit
that is newer than the tags of the clone is looked up in the wheels: its release makes most of the
changes that the commit makes. `--write` keeps the releases in `cited_commits.toml`, which a test
compares with the history, without a clone.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from common import ROOT, checkout_context, prepare

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
"""Length of a commit id in the history."""
SHORTEST = 20
"""Characters of a line that is looked for in a wheel; shorter ones are in many files."""


def main() -> None:
    """Compare, print, and keep the releases if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    clone = Clone(options.clone)
    cited = [*read_citations()]
    wrong = 0
    for family, change, commit in cited:
        first = clone.first_release(commit)
        if first != change.release:
            wrong += 1
            print(f"{change.release:8} {commit}  {first or 'in no release':14} {family}")
            print(f"{'':8} {change.summary}")
            print(f"{'':8} {clone.subject(commit)}")
    commits = sorted({commit for _, _, commit in cited})
    newer = sum(not clone.find_tagged_release(commit) for commit in commits)
    print(f"{len(cited)} lines cite {len(commits)} commits, {newer} of them newer than the tags")
    print(f"{wrong} lines name another release")
    if options.write:
        lines = [f'{commit} = "{clone.first_release(commit)}"' for commit in commits]
        FILE.write_text("# Written by cited_commits.py --write.\n\n" + "\n".join(lines) + "\n")


def read_citations() -> Iterator[tuple[str, BehaviourChange, str]]:
    """Yield the family, the change and the commit of each line that cites a commit of jax."""
    for family, history in load_families(ROOT / "cases").items():
        for change in history.change:
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
        return self.find_tagged_release(commit) or self._find_in_wheels(commit)

    def find_tagged_release(self, commit: str) -> str:
        """Return the first release whose tag contains a commit, empty for none."""
        return self._first_releases.get(commit[:DIGITS], "")

    @cached_property
    def _first_releases(self) -> dict[str, str]:
        """The first release of each commit: `git tag --contains` for all commits at once."""
        first: dict[str, str] = {}
        for release in self._releases:
            for commit in self._git("rev-list", f"{TAG}{release}").split():
                # Releases are in order, so the first tag that contains a commit stays.
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
    def _find_in_wheels(self, commit: str) -> str:
        """Return the newer release that makes most of the commit's changes, empty for none."""
        changed = self._read_changed_lines(commit)
        for before, release in pairwise(RELEASES[RELEASES.index(self._releases[-1]) :]):
            made = possible = 0
            for (file, sign), lines in changed.items():
                old, new = (read_module(one, file) for one in (before, release))
                source, target = (old, new) if sign == "+" else (new, old)
                made += len(lines & target - source)
                possible += len(lines - source)
            if 2 * made > possible:
                return release
        return ""

    def _read_changed_lines(self, commit: str) -> dict[tuple[str, str], set[str]]:
        """Return the lines that a commit adds to (+) or removes from (-) each module of jax."""
        changed: dict[tuple[str, str], set[str]] = {}
        file = ""
        for line in self._git("show", "--format=", commit, "--", "jax/*.py").splitlines():
            if line.startswith(("--- a/", "+++ b/")):
                file = line[len("+++ b/") :]
            elif line[:1] in ("+", "-") and len(line.strip()) > SHORTEST:
                changed.setdefault((file, line[0]), set()).add(line[1:].strip())
        return changed

    def _git(self, *words: str) -> str:
        command = ["git", "-C", str(self._path), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@cache
def read_module(release: str, file: str) -> frozenset[str]:
    """Return the lines of a module of a release, none if the release lacks the module."""
    path = provide_packages(release) / file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return frozenset(line.strip() for line in text.splitlines())


@cache
def provide_packages(release: str) -> Path:
    """Return the site-packages folder of a release's environment, provisioned if missing."""
    preparation = prepare(f"{release}@cpu8")
    (planned,) = preparation.cells
    lock = preparation.locks[planned.cell.id]
    python = provision(planned.cell, lock=lock, cache=checkout_context().cache).python
    (folder,) = python.parent.parent.glob("lib/python*/site-packages")
    return folder


if __name__ == "__main__":
    main()
