"""What a run of a suite is evidence of, and why some of it is of nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.errors import UsageError
from conformance.golden.spans import is_release
from conformance.judge.suite_verdict import XFAIL
from conformance.model.outcome import Outcome, Verdict
from conformance.model.record import ErrorInfo
from conformance.suites.catalogue.named import NODE
from conformance.suites.catalogue.standards import CLAIMED
from conformance.suites.known.accepting import CellResults, Failure
from conformance.suites.known.deviations import Generated
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.engine.run_loader import LoadedRun
    from conformance.model.record import Record
    from conformance.model.run import RunCell, RunInfo, RunSuite

_PLAIN: Final = re.compile(r".+-py\d+-(cpu|gpu|tpu)\d*")
"""Ids of cells that are as their release came out: nothing pinned, configured or flagged."""
_BUILT: Final = ("jax", "jaxlib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a run showed.

    Attributes:
        evidence: What is known for sure, cell by cell.
        refused: Cells, and tests of cells, that are evidence of nothing, and why.
        generated: What the run was made of.
    """

    evidence: tuple[CellResults, ...]
    refused: tuple[str, ...]
    generated: Generated


def shown_by(run: LoadedRun, name: str, pinned: str) -> Shown:
    """Return what a run of a suite showed.

    Args:
        run: The run.
        name: Name of the suite.
        pinned: The revision that its definition names.

    Raises:
        UsageError: If the run is not of the whole suite, as it is usually run, to its end.
    """
    suite = run.info.suite
    problem = next(_problems(run.info, name, pinned), "")
    if suite is None or problem:
        raise UsageError(f"run {run.id} {problem}")
    records: dict[str, list[Record]] = defaultdict(list)
    for record in run.records:
        records[record.cell].append(record)
    evidence, refused = [], []
    for cell in run.info.cells:
        own = records[cell.id]
        if why := _refusal(cell, own, run.info):
            refused.append(f"{cell.id}: {why}")
            continue
        standard = run.info.identities.get(cell.id, {}).get("facts", {}).get("standard", "")
        one = _evidence(cell, own, suite, standard)
        evidence.append(one)
        flaky = "is flaky, which is nothing that is known"
        refused += [f"{cell.id}: {test} {flaky}" for test in sorted(one.unknown)]
    return Shown(evidence=tuple(evidence), refused=tuple(refused), generated=generated_from(suite))


def generated_from(suite: RunSuite) -> Generated:
    """Return what a run of a suite was made of, without its releases."""
    settings = suite.settings
    return Generated(
        revision=suite.revision, examples=settings.get("max_examples"), seed=settings.get("seed")
    )


def _problems(info: RunInfo, name: str, pinned: str) -> Iterator[str]:
    """Yield why a run is no evidence at all."""
    suite = info.suite
    if suite is None or suite.name != name:
        yield f"is of {'cases' if suite is None else suite.name}, expected one of {name}"
        return
    if info.exit is None:
        yield "did not come to its end; what is accepted is what a whole run showed"
    if suite.revision not in {"", pinned}:
        yield f"is of revision {suite.revision}, expected {pinned}, which is pinned"
    if not suite.complete:
        yield "is of some tests only; what is accepted is what a whole run showed"
    if suite.settings.get("shrink"):
        yield "made examples smaller, so that errors may not be the usual ones; run without"
    asked = suite.settings.get("standard", CLAIMED)
    if asked != CLAIMED:
        yield f"is held against {asked} of the standard, expected what each release claims"


def _refusal(cell: RunCell, records: Sequence[Record], info: RunInfo) -> str:
    """Return why a cell is evidence of nothing, empty if it is evidence."""
    if _PLAIN.fullmatch(cell.id) is None:
        return "is not as its release came out; its failures are its own"
    for package in _BUILT:
        if (version := cell.versions.get(package)) and not is_release(version):
            return f"{package} {version} is no release: nothing of a development build is kept"
    if not cell.release:
        return "it is not known which jax it has"
    if not any(record.outcome.observed for record in records):
        return "no test was run"
    missing = sum(where == cell.id for _, where in info.plan) - len(records)
    spoilt = sum(record.outcome in {Outcome.INFRA, Outcome.NOT_RUN} for record in records)
    if missing or spoilt:
        return f"{plural(missing + spoilt, 'test')} did not finish; run it again"
    return ""


def _evidence(
    cell: RunCell, records: Sequence[Record], suite: RunSuite, standard: str
) -> CellResults:
    named = {record.case.removeprefix(f"{suite.name}/"): record for record in records}
    plain = _PLAIN.fullmatch(cell.id)
    failures = dict(_failures(named))
    broken = frozenset(name for name in failures if NODE not in name)
    # A module whose tests are known to fail for that needs no entry of its own.
    known = {name for name in broken if named[name].verdict is Verdict.KNOWN}
    return CellResults(
        release=cell.release, platform=plain[1] if plain else "", standard=standard,
        failures={name: one for name, one in failures.items() if name not in known},
        unknown=frozenset(n for n, record in named.items() if record.verdict is Verdict.FLAKY),
        broken=broken,
    )  # fmt: skip


def _failures(named: Mapping[str, Record]) -> Iterator[tuple[str, Failure]]:
    for name, record in named.items():
        failed = record.outcome.observed and record.outcome is not Outcome.OK
        if failed and record.verdict is not Verdict.FLAKY and XFAIL not in record.artifacts:
            error = record.error or ErrorInfo(type="", message="")
            yield name, Failure(record.outcome, error)
