"""Evidence on a root cause: a representative job, good releases, claims, and text. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from packaging.version import Version

from conformance.cells.nightly import make_stable_cell_ids
from conformance.errors import UsageError
from conformance.judge.ir import find_changed_facts
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.triage.repro.assertions import READINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.cells.cell import Cell
    from conformance.engine.runs.digests import Digest
    from conformance.engine.runs.root_causes import RootCause
    from conformance.model.case import Case
    from conformance.model.golden import GoldenEntry
    from conformance.model.record import Record
    from conformance.model.run_files import Culprit, CulpritCommit, Evidence
    from conformance.triage.upgrade.comparison import Culprits

_STEPS: Final = (0, 1, 3, 7, 15, 31)
"""How many releases are skipped, from the newest older one on."""
FILES: Final = 3
"""Changed files that are named of a package."""


def find_objection(cause: RootCause) -> str:
    """Return why a cause is not looked into, empty if it can be.

    Args:
        cause: The cause.
    """
    if not cause.is_about_jax:
        return "it says nothing about JAX"
    if all(record.verdict is Verdict.FLAKY for record in cause.records):
        return "its jobs do not show the same twice"
    return ""


def choose_representative(
    cause: RootCause, cells: Mapping[str, Cell], cases: Mapping[str, Case]
) -> tuple[Record, Case, Cell]:
    """Return the job that represents a cause, with its case and cell.

    One process comes before several, CPUs before accelerators, a plain cell before one with
    options; then what is wrong by itself before what is only not as recorded, and that before what
    deviates as declared, wherever it is right, too; few devices, and what takes least time.

    Args:
        cause: The cause.
        cells: The cells that are known, by id.
        cases: The cases that are, by id.

    Raises:
        UsageError: If neither case nor cell of any of its jobs is known.
    """
    known = [
        record
        for record in cause.records
        if record.verdict is not Verdict.FLAKY and record.cell in cells and record.case in cases
    ]
    if not known:
        first = cause.records[0]
        raise UsageError(
            f"{first.case} on {first.cell}: the case or the cell no longer exists, "
            "expected both as in the run"
        )
    one = min(known, key=lambda record: _rank_needs(record, cells[record.cell], cases[record.case]))
    return one, cases[one.case], cells[one.cell]


def _rank_needs(record: Record, cell: Cell, case: Case) -> tuple[object, ...]:
    """Return the needs of a job as a sort key, the most important first."""
    options = (cell.deps != "era", cell.pins, cell.x64, cell.config, cell.xla_flags)
    return (
        cell.place.processes > 1,
        cell.place.kind != "cpu",
        sum(map(bool, options)),
        _rank_visibility(record),
        case.kind != "program",
        case.devices or cell.devices,
        record.seconds.get("job", sum(record.seconds.values())),
        record.case,
        record.cell,
    )


def _rank_visibility(record: Record) -> int:
    """Return how well a job shows by itself that something is wrong: less is better."""
    deviates = record.conformance is Conformance.DEVIATES or record.outcome is not Outcome.OK
    if deviates and record.verdict is Verdict.CHANGED:
        return 2
    return 0 if deviates else 1


def list_candidates(release: str, known: Sequence[str], *, same: bool, seen: str = "") -> list[str]:
    """Return where a job may have been right.

    Args:
        release: Version of jax where it is not.
        known: Known releases, oldest first.
        same: Whether that release may be right itself: where it is not, its code was changed.
        seen: The last night that was right, empty if none is known.

    Returns:
        That release, the last night, and older releases, further and further back.
    """
    here = Version(release)
    older = [text for text in reversed(known) if Version(text) < here]
    itself = [text for text in known if same and Version(text) == here]
    night = [seen] if seen and Version(seen) < here else []
    back = [older[step] for step in _STEPS if step < len(older)]
    return list(dict.fromkeys([*itself, *night, *back]))


def find_last_right(digests: Iterable[Digest], case: str, place: str) -> str:
    """Return the release of jax with which the newest run saw a job as expected, empty for none.

    Args:
        digests: Runs, the newest first.
        case: The case of the root cause.
        place: The name of its cell in every run.
    """
    return next((found for digest in digests for found in _find_right(digest, case, place)), "")


def _find_right(digest: Digest, case: str, place: str) -> Iterator[str]:
    if case not in digest.cases:
        return
    row = digest.table[digest.cases.index(case)]
    places = make_stable_cell_ids(digest.cells)
    for number in np.flatnonzero(row).tolist():
        state = digest.states[row[number] - 1]
        release = digest.releases[number]
        right = state.is_conclusive and not state.unexpected
        if right and release and places[digest.cells[number]] == place:
            yield release


def add_recorded_claims(case: Case, record: Record, golden: GoldenEntry | None) -> Case:
    """Return a case that claims the facts of its golden that a job does not state.

    Args:
        case: The case of the root cause.
        record: Its record.
        golden: Its golden, if there is one.
    """
    if golden is None or record.outcome is not Outcome.OK:
        return case
    recorded = {
        name: golden.facts[name]
        for name in READINGS
        if name in golden.facts and name not in case.facts
        and any(find_changed_facts({name: record.facts.get(name)}, {name: golden.facts[name]}))
    }  # fmt: skip
    return replace(case, facts={**case.facts, **recorded}) if recorded else case


def render_evidence(found: Evidence) -> Iterator[str]:
    """Yield evidence, a line for each part."""
    yield f"{found.case} on {found.cell}"
    if found.first_bad:
        sure = "confirmed" if found.confirmed else "not confirmed"
        yield f"last good {found.last_good}, first bad {found.first_bad}, {sure}: {found.predicate}"
    for culprit in found.culprits:
        yield f"culprit: {format_culprit(culprit)}"
    yield from render_origin(found)
    if found.repro:
        yield f"reproduction: {found.command}"
    yield from found.unresolved


def render_origin(found: Evidence | Culprits) -> Iterator[str]:
    """Yield the commits and the layer behind a change, and remarks, a line for each."""
    head = "commit" if len(found.commits) == 1 else "one of"
    for commit in found.commits:
        yield f"{head}: {format_commit(commit)}"
    if found.layer:
        yield f"layer: {found.layer}"
    yield from found.remarks


def format_commit(commit: CulpritCommit) -> str:
    """Return a commit in a line, with its references and its address."""
    head = f"{commit.package} {commit.hash[:12]} {commit.date} {commit.title}"
    return " ".join(filter(None, (head, *commit.references, commit.url)))


def format_culprit(culprit: Culprit) -> str:
    """Return a culprit in a line, e.g. `jax 0.8.0 -> 0.8.1`."""
    if not culprit.files:
        return f"{culprit.package} {culprit.before} -> {culprit.after}"
    count = len(culprit.files)
    named = ", ".join(culprit.files[:FILES])
    more = f" and {count - FILES} more" if count > FILES else ""
    files = "file" if count == 1 else "files"
    return f"{culprit.package} {culprit.after} with {count} changed {files}: {named}{more}"
