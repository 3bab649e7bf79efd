"""Finds the culprit of each line of the history by running, and compares it with the cited one.

    python benchmarks/history_commits.py CLONE LOG [--release R] [--part K/N] [--only COUNT]
    python benchmarks/history_commits.py CLONE LOG --write

CLONE is a clone of jax with its tags. For each line of a `changes.toml` the first of its cases is
run on the release of the line and on the release before, and then on commits between the two. The
answers are appended to LOG, one JSON object per line; lines that LOG has are not searched again.
A table of signatures changes at many commits, so only the entries that a line names are searched.
`--write` writes the culprits to the files of the history, and prints the disagreements.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from common import ROOT, checkout_context

from conformance.app.search.bisect import find_change
from conformance.app.search.commits import find_commit
from conformance.app.search.options import SearchOptions
from conformance.cells.releases import load_releases
from conformance.corpus.behaviour_changes import FILE_NAME, load_families
from conformance.errors import ConformanceError
from conformance.search.endpoints import DifferentFailuresError
from conformance.triage.commits.commit_search import CommitVerdict
from conformance.triage.programs.program import ProgramKind, ProgramTarget

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.app.context import ProjectContext
    from conformance.app.target import Target
    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.model.case import Case
    from conformance.search.answers import SearchStep
    from conformance.triage.commits.render import PackageCulprit

RELEASES = [*load_releases(ROOT / "matrix").versions]
LAYERS = ROOT / "benchmarks" / "history" / "layers.jsonl"
"""The log of `history_layers.py`."""
PLACES = {"tpu": "tpu:v5e:2x2", "cpu-mp": "cpu-mp2"}
"""A place of each kind of platform."""
SIGNATURES = "api_signatures"
"""The family of tables."""
ENTRIES = """
import sys

sys.path[:0] = {paths}
from api_signatures import {module}

value = {module}.{table}(None, **{params})
tables = value if all(isinstance(v, dict) for v in value.values()) else {{"": value}}
tables = {{key: table for key, table in tables.items() if isinstance(table, dict)}}
entries = sorted((key, *entry) for key, table in tables.items() for entry in table.items())
names = {names}
for entry in entries:
    if not names or entry[1] in names:
        print(*entry)
"""
"""The script that prints entries of a table."""
CITED = re.compile(r"jax-ml/jax(?:@([0-9a-f]{7,40})|(#\d+))")


def main() -> None:
    """Search, or write what was found."""
    options = parse_options(__doc__ or "", "clone")
    context = checkout_context()
    if options.write:
        write_culprits(context, read_log(options.log), options.clone)
        return
    for change in list_unsearched(options, list_changes()):
        row = search(context, change, str(options.clone))
        append(options.log, row)
        print(f"{row['seconds']:5.1f} s {row['probes']:2} {row['release']:8} {row['case']}: "
              f"{row['culprit'] or row['problem']} (cited {row['cited']})", flush=True)  # fmt: skip


def parse_options(description: str, *first: str) -> argparse.Namespace:
    """Return the options of a search over the history.

    Args:
        description: Text of its help.
        first: Names of paths before that of the log.
    """
    parser = argparse.ArgumentParser(description=description)
    for name in (*first, "log"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--release", default="")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--only", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


def list_unsearched(
    options: argparse.Namespace, changes: Iterable[BehaviourChange]
) -> Iterator[BehaviourChange]:
    """Yield the lines of a part of the history that the log lacks."""
    part, parts = map(int, options.part.split("/"))
    lines = [change for change in changes if options.release in ("", change.shown_at)]
    if options.only:
        # The same sample each time, spread over releases and families.
        lines = random.Random(0).sample(lines, options.only)  # noqa: S311 - no secret
    known = {key_of(row) for row in read_log(options.log)}
    for change in lines[part - 1 :: parts]:
        if identify(change) not in known:
            yield change


def append(log: Path, row: dict[str, Any]) -> None:
    """Append an answer to a log."""
    with log.open("a") as file:
        file.write(json.dumps(row) + "\n")


def key_of(row: dict[str, Any]) -> tuple[str, str, str]:
    """Return what identifies a line of the history."""
    return row["case"], row["release"], row["summary"]


def identify(change: BehaviourChange) -> tuple[str, str, str]:
    """Return the key of a line, which `key_of` returns for its answer."""
    return change.cases[0], change.shown_at, change.summary


def list_changes() -> list[BehaviourChange]:
    """Return all lines but those of other platforms, in the order of releases.

    Neighbours share source trees.
    """
    families = load_families(ROOT / "cases").values()
    lines = [change for declared in families for change in declared.change if not change.platform]
    return sorted(lines, key=lambda change: RELEASES.index(change.shown_at))


def read_log(log: Path) -> list[dict[str, Any]]:
    """Return the answers of earlier calls."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def search(context: ProjectContext, change: BehaviourChange, clone: str) -> dict[str, Any]:
    """Return the answer for a line of the history."""
    before = RELEASES[RELEASES.index(change.shown_at) - 1]
    case = context.select_cases([change.cases[0]])[0]
    options = make_options(case, change, before, change.shown_at)
    target: Target = case
    if case.family == SIGNATURES:
        target, options = write_script(case, change), replace(options, when="output")
    row = {
        "case": change.cases[0], "release": change.shown_at, "summary": change.summary,
        "cited": change.source, "shown_by": change.shown_by, "culprit": "", "problem": "",
        "probes": 0, "commits": 0, "references": [], "title": "", "others": [],
        "confirmed": False,
    }  # fmt: skip
    start = perf_counter()
    try:
        try:
            found = find_change(context, target, options, lambda _: None)
        except DifferentFailuresError:
            options = replace(options, when="ending")
            found = find_change(context, target, options, lambda _: None)
        culprit = find_commit(context, target, options, found, location=clone, say=lambda _: None)
        row |= describe(culprit)
    except ConformanceError as error:
        # The log is no place for the paths of a machine.
        row["problem"] = str(error).replace(clone, "CLONE").replace(str(Path.home()), "~")
    return row | {"seconds": round(perf_counter() - start, 1)}


def write_script(case: Case, change: BehaviourChange) -> ProgramTarget:
    """Write a script that prints the entries of a table that a line names, all if it names none."""
    quoted = {name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)", change.summary)}
    folder = ROOT / "cases" / SIGNATURES / "golden" / case.topic
    known = "".join(
        file.read_text()
        for file in (folder / case.id.partition("/")[2].strip("]").replace("[", "@")).glob("value*")
    )
    text = ENTRIES.format(
        paths=[str(ROOT), str(ROOT / "cases")], module=case.topic, table=case.name,
        params=dict(case.params), names={name for name in quoted if f"'{name}':" in known},
    )  # fmt: skip
    folder = Path(tempfile.gettempdir()) / "entries"
    folder.mkdir(exist_ok=True)
    file = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.py"
    file.write_text(text)
    return ProgramTarget(kind=ProgramKind.SCRIPT, text=str(file))


def make_options(
    case: Case, change: BehaviourChange, good: str, bad: str, *, jax: str = "latest"
) -> SearchOptions:
    """Return the options of a search for a line of the history.

    Args:
        case: The case that shows the change.
        change: The line.
        good: Older end.
        bad: Newer end.
        jax: Release whose packages are used where the ends are commits.
    """
    # A change of an error's message is seen only if messages are compared.
    return SearchOptions(
        good=good, bad=bad, jax=jax, jobs=1, platform=find_place(case),
        when="message" if change.shown_by == "error" else None,
    )  # fmt: skip


def find_place(case: Case) -> str:
    """Return where a case runs, empty for the CPU with as many devices as it needs."""
    if "cpu" in case.platforms or not case.platforms:
        return ""
    return PLACES.get(case.platforms[0], case.platforms[0])


def describe(culprit: PackageCulprit) -> dict[str, Any]:
    """Return the culprit as it is written to the history, with the effort."""
    finding = culprit.finding
    names = [commit.short for commit in finding.candidates]
    steps: list[SearchStep[Any]] = [*finding.checks, *finding.steps]
    tried = [step for step in steps if not step.again]
    found = {
        "probes": len(tried),
        "commits": len(finding.cells) - 1,
        "confirmed": finding.is_confirmed,
        # Other commits that changed the behaviour on the way to that of the newer release.
        "others": [
            f"jax@{finding.cells.commits[other.after].short}"
            for other in finding.changes
            if other != finding.main
        ],
        "verdict": str(finding.verdict),
        "remarks": list(finding.remarks),
        "trial_seconds": round(sum(step.seconds for step in steps), 2),
    }
    if finding.verdict is CommitVerdict.ENVIRONMENT:
        near = [str(move) for move in culprit.moves]
        return found | {"culprit": "jaxlib", "moves": near}
    if len(names) == 1:
        commit = finding.candidates[0]
        return found | {
            "culprit": f"jax@{commit.short}", "references": list(commit.references),
            "title": commit.title,
        }  # fmt: skip
    return found | {"problem": f"{len(names)} candidates: {' '.join(names[:20])}"}


def may_be_library(context: ProjectContext, row: dict[str, Any]) -> bool:
    """Say whether a library that the case uses moved, too, so that jaxlib is not the only one."""
    case = context.select_cases([row["case"]])[0]
    used = {re.split(r"[^\w-]", requirement)[0] for requirement in case.requires}
    return not used.isdisjoint(move.partition(" ")[0] for move in row.get("moves", ()))


def write_culprits(context: ProjectContext, rows: list[dict[str, Any]], clone: Path) -> None:
    """Write the culprits to the files of the history, and print what disagrees."""
    # Where the search proves nothing, the layer may: it compiles one module with both compilers.
    of_jaxlib = {key_of(row) for row in read_log(LAYERS) if row["layer"] in ("compiler", "runtime")}
    sure = [
        row
        for row in rows
        if row["culprit"]
        and not (row["culprit"] == "jaxlib" and may_be_library(context, row))
        and (row["confirmed"] or (row["culprit"] == "jaxlib" and key_of(row) in of_jaxlib))
    ]
    found = {key_of(row): row["culprit"] for row in sure}
    write_field("culprit", {key_of(row): found.get(key_of(row), "") for row in rows})
    compared = [row for row in sure if CITED.match(row["cited"])]
    wrong = [row for row in compared if not agrees(row, clone)]
    for row in wrong:
        print(f"{row['release']:8} {row['case']}\n  cited {row['cited']}, found "
              f"{row['culprit']} {row['title']} {' '.join(row['references'])}\n"
              f"  {row['summary']}")  # fmt: skip
    print(f"{len(sure)} of {len(rows)} lines have a culprit; {len(compared) - len(wrong)} of "
          f"{len(compared)} agree with the cited commit or thread; "
          f"median {median(row['probes'] for row in sure)} probes, "
          f"{median(row['seconds'] for row in sure)} s")  # fmt: skip


def write_field(name: str, values: Mapping[tuple[str, str, str], str]) -> None:
    """Write a field of lines of the history, see `set_field`.

    Args:
        name: The field.
        values: Its values by case, release and summary of the line; empty for no such field.
    """
    for family, declared in load_families(ROOT / "cases").items():
        file = ROOT / "cases" / family / FILE_NAME
        blocks = file.read_text().split("[[change]]\n")
        for number, change in enumerate(declared.change, 1):
            value = values.get(identify(change))
            if value is not None:
                blocks[number] = set_field(blocks[number], name, value)
        file.write_text("[[change]]\n".join(blocks))


def set_field(block: str, name: str, value: str) -> str:
    """Return the text of a change with a field: where it was, or after `shown_by` and `culprit`."""
    line = f'{name} = "{value}"\n' if value else ""
    found, count = re.subn(rf"^{name} = .*\n", line, block, count=1, flags=re.MULTILINE)
    if count:
        return found
    return re.sub(
        r"^shown_by = .*\n(?:culprit = .*\n)?", rf"\g<0>{line}", block, count=1, flags=re.MULTILINE
    )


def get_cited_commit(row: dict[str, Any]) -> str:
    """Return the commit that a line cites, empty if it cites none."""
    cited = CITED.match(row["cited"])
    return (cited[1] or "") if cited else ""


def agrees(row: dict[str, Any], clone: Path) -> bool:
    """Say whether the culprit is the cited commit or its merge, or names the cited thread."""
    cited = CITED.match(row["cited"])
    assert cited is not None
    if not cited[1]:
        return bool(cited[2] in row["references"])
    names = [name.removeprefix("jax@") for name in (row["culprit"], *row.get("others", []))]
    return any(is_part(cited[1], name, clone) for name in names if name != "jaxlib")


def is_part(commit: str, merge: str, clone: Path) -> bool:
    """Say whether a commit is another one, or came with it as a part of a pull request."""
    return is_ancestor(commit, merge, clone) and not is_ancestor(commit, f"{merge}^", clone)


def is_ancestor(commit: str, of: str, clone: Path) -> bool:
    """Say whether a commit is another one or lies before it."""
    command = ["git", "-C", str(clone), "merge-base", "--is-ancestor", commit, of]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    main()
