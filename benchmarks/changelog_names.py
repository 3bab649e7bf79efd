"""Compares the names in JAX's changelog with the signatures that the corpus records.

    python benchmarks/changelog_names.py CLONE [--write]

CLONE is a clone of jax. A name counts if its item of the changelog says that it, or a parameter of
it, was added, removed, renamed or deprecated. The goldens of `api_signatures` should show a change
of it in that release. `--write` replaces the section of docs/coverage.md that lists the others.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from audit_sources import load_cases
from common import ROOT

from conformance.cells.releases import load_releases
from conformance.golden.store import GoldenStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.model.case import Case

FAMILY = "api_signatures"
PAGE = ROOT / "docs" / "coverage.md"
HEADING = "## Names of the changelog"
SECTION = re.compile(rf"{HEADING}\n.*?(?=\n## |\Z)", re.DOTALL)
RELEASES = [*load_releases(ROOT / "matrix").versions]
RELEASE = re.compile(r"^## jax (\d[\d.]*)", re.IGNORECASE)
NAME = re.compile(r"`~?((?:jax|jnp|lax)\.[\w.]+\w)(?:\(\))?`")
FULL_NAMES = {"jnp": "jax.numpy", "lax": "jax.lax"}
CHANGED = re.compile(
    r"\b(add(s|ed)?|new|remov(es?|ed|al)|delet(es?|ed)|renam(es?|ed)|replac(es?|ed)|deprecat\w+"
    r"|arguments?|parameters?|keywords?|no longer (available|accepts?))\b",
    re.IGNORECASE,
)
INSTEAD = re.compile(
    r"\b(use|using|prefer|in favou?r of|replaced (by|with)|moved to|alias (for|of)|subsumes"
    r"|in terms of|wraps|version of|was simply)\s+[^`.;]*`[^`]+`",
    re.IGNORECASE,
)
"""A name that an item recommends, or explains another with."""
SOON = 7
"""Releases after that of the changelog in which a change is looked for."""
TEXT = """\
The items of JAX's changelog up to {newest} that say that something was added, removed, renamed or
deprecated have {counts}. The family of
[`api_signatures/module`](../cases/api_signatures/signatures.py) shows a change of {seen} of them in
the release of the changelog. Those below change in a later release: the changelog
was early, or the item is about something else. The others do not change: the item is about
behaviour, recommends the name, or deprecates it with a warning that comes with the call. The table
is written by `python benchmarks/changelog_names.py CLONE --write`.
"""
KEY = re.compile(r"\['([^']+)'\]")


class Mention(NamedTuple):
    """A name in an item of the changelog.

    Attributes:
        release: The release of the section; of a withdrawn one, the next.
        name: Dotted name.
        advised: Whether the item names it only as what to use instead, or to explain another.
    """

    release: str
    name: str
    advised: bool


def main() -> None:
    """Compare, print, and write the section if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    command = ["git", "-C", str(options.clone), "show", "HEAD:CHANGELOG.md"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    section = render_section([*read_mentions(text)], find_changes())
    print(section)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(SECTION.sub(lambda _: section, page), encoding="utf-8")


def render_section(mentions: list[Mention], changes: Mapping[str, list[str]]) -> str:
    """Return the section of the page, in Markdown."""
    known = [one for one in mentions if one.name in changes]
    seen = [one for one in known if one.release in changes[one.name]]
    others = {
        (one.release, one.name, later)
        for one in known
        if one not in seen
        and not one.advised
        and (later := next((r for r in changes[one.name] if is_later(r, one.release)), ""))
    }
    rows = sorted(others, key=lambda row: (-RELEASES.index(row[0]), row[1]))
    counts = f"{len(mentions)} names; {len(known)} are public functions or classes"
    lines = [
        f"{HEADING}\n",
        TEXT.format(counts=counts, seen=len(seen), newest=mentions[0].release),
        "| changelog | name | parameters change in |",
        "| --- | --- | --- |",
        *(f"| {release} | `{name}` | {later} |" for release, name, later in rows),
    ]
    return "\n".join(lines) + "\n"


def is_later(release: str, than: str) -> bool:
    """Say whether a release is one of the next ones."""
    return 0 < RELEASES.index(release) - RELEASES.index(than) <= SOON


def read_mentions(changelog: str) -> Iterator[Mention]:
    """Yield the names of items that say that something came, went or was renamed."""
    release, item = "", ""
    for line in [*changelog.splitlines(), "## end"]:
        if re.match(r"## |\* |  \* ", line):
            if release and CHANGED.search(item):
                for name in dict.fromkeys(NAME.findall(item)):
                    head, _, rest = name.partition(".")
                    full = f"{FULL_NAMES.get(head, head)}.{rest}"
                    yield Mention(release, full, name not in INSTEAD.sub("", item))
            item = ""
        if line.startswith("## "):
            found = RELEASE.match(line)
            release = find_release(found[1]) if found else ""
        item = f"{item} {line.strip(' *')}".strip()


def find_release(version: str) -> str:
    """Return a release, or the next one for a withdrawn one; empty before the first."""
    number = tuple(map(int, version.split(".")))
    later = (one for one in RELEASES[1:] if tuple(map(int, one.split("."))) >= number)
    return next(later, "") if number > tuple(map(int, RELEASES[0].split("."))) else ""


def find_changes() -> Mapping[str, list[str]]:
    """Return the releases in which the text of each public name changed, none for a constant."""
    store = GoldenStore(ROOT / "cases")
    changes: dict[str, list[str]] = defaultdict(list)
    for case in load_cases().values():
        if case.family != FAMILY:
            continue
        texts = [read_texts(store, case, release) for release in RELEASES]
        for (_, older), (release, newer) in pairwise(zip(RELEASES, texts, strict=True)):
            for name in older.keys() | newer.keys():
                changes[name] += [release] * (older.get(name) != newer.get(name))
    return changes


def read_texts(store: GoldenStore, case: Case, release: str) -> dict[str, bytes]:
    """Return the texts of a release in the golden of a case, by dotted name."""
    entry = store.lookup(case, "cpu", release)
    if entry is None or not entry.exact or entry.value is None:
        return {}
    parameter = case.id.partition("[")[2].rstrip("]")
    roots = {"module": parameter, "methods": f"jax.{parameter}", "config_options": "jax.config"}
    texts = {}
    for leaf in entry.value.leaves:
        root = roots.get(case.name.partition("[")[0], parameter.rpartition(".")[0] or parameter)
        keys = KEY.findall(leaf.path)
        texts[".".join([*([root] if len(keys) == 1 else []), *keys])] = leaf.data
    return texts


if __name__ == "__main__":
    main()
