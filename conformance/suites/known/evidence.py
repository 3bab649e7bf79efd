"""Evidence about known failures: the reliable results of a run of a suite."""

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
from conformance.suites.catalogue.request import NODE
from conformance.suites.catalogue.standards import CLAIMED
from conformance.suites.known.deviations import DeviationOrigin
from conformance.suites.known.update import CellResults, TestFailure
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.engine.runs.loader import LoadedRun
    from conformance.model.record import Record
    from conformance.model.run import RunCell, RunInfo, RunSuite

_PLAIN: Final = re.compile(r".+-py\d+-(cpu|gpu|tpu)\d*")
"""Ids of cells with the packages of their release: without pins, options or flags."""
_JAX_PACKAGES: Final = ("jax", "jaxlib")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvidence:
    """The evidence of a run.

    Attributes:
        evidence: The results of each cell.
        refused: Cells, and tests of cells, that are no evidence, with the reason.
        generated: The settings of the run.
    """

    evidence: tuple[CellResults, ...]
    refused: tuple[str, ...]
    generated: DeviationOrigin


def extract_evidence(run: LoadedRun, name: str, pinned: str) -> RunEvidence:
    """Return the evidence of a run of a suite.

    Args:
        run: Run with its records.
        name: Name of the suite.
        pinned: The revision in the suite's definition.

    Raises:
        UsageError: If it is no finished run of the whole suite, with the usual settings.
    """
    suite = run.info.suite
    problem = next(_find_problems(run.info, name, pinned), "")
    if suite is None or problem:
        raise UsageError(f"run {run.id} {problem}")
    records: dict[str, list[Record]] = defaultdict(list)
    for record in run.records:
        records[record.cell].append(record)
    evidence, refused = [], []
    for cell in run.info.cells:
        own = records[cell.id]
        if reason := _refuse_cell(cell, own, run.info):
            refused.append(f"{cell.id}: {reason}")
            continue
        standard = run.info.identities.get(cell.id, {}).get("facts", {}).get("standard", "")
        results = _make_results(cell, own, suite, standard)
        evidence.append(results)
        refused += [
            f"{cell.id}: {test} is flaky, so its failure is not a known one"
            for test in sorted(results.unknown)
        ]
    origin = describe_origin(suite)
    return RunEvidence(evidence=tuple(evidence), refused=tuple(refused), generated=origin)


def describe_origin(suite: RunSuite) -> DeviationOrigin:
    """Return the settings of a run of a suite, without its releases."""
    settings = suite.settings
    return DeviationOrigin(
        revision=suite.revision, examples=settings.get("max_examples"), seed=settings.get("seed")
    )


def _find_problems(info: RunInfo, name: str, pinned: str) -> Iterator[str]:
    """Yield the reasons why a run is no evidence."""
    suite = info.suite
    if suite is None or suite.name != name:
        yield f"is of {'cases' if suite is None else suite.name}, expected a run of {name}"
        return
    if info.exit is None:
        yield "did not finish; only a whole run can be accepted"
    if suite.revision not in {"", pinned}:
        yield f"is of revision {suite.revision}, expected {pinned}, which is pinned"
    if not suite.complete:
        yield "is of some tests only; only a whole run can be accepted"
    if suite.settings.get("shrink"):
        yield "made examples smaller, so that errors may not be the usual ones; run without"
    version = suite.settings.get("standard", CLAIMED)
    if version != CLAIMED:
        yield f"is held against {version} of the standard, expected the version each release claims"


def _refuse_cell(cell: RunCell, records: Sequence[Record], info: RunInfo) -> str:
    """Return why a cell is no evidence, empty if it is."""
    # The file knows releases and platforms only: a failure of other packages would be declared for
    # all.
    if _PLAIN.fullmatch(cell.id) is None:
        return "has other packages or settings than its release; its failures are its own"
    for package in _JAX_PACKAGES:
        if (version := cell.versions.get(package)) and not is_release(version):
            return f"{package} {version} is no release: failures of development builds are not kept"
    if not cell.release:
        return "its jax release is unknown"
    if not any(record.outcome.observed for record in records):
        return "no test was run"
    # A job that a killed or interrupted run did not reach has no record.
    missing = sum(planned == cell.id for _, planned in info.plan) - len(records)
    failed = sum(record.outcome in {Outcome.INFRA, Outcome.NOT_RUN} for record in records)
    if missing or failed:
        return f"{plural(missing + failed, 'test')} did not finish; run it again"
    return ""


def _make_results(
    cell: RunCell, records: Sequence[Record], suite: RunSuite, standard: str
) -> CellResults:
    by_name = {record.case.removeprefix(f"{suite.name}/"): record for record in records}
    plain = _PLAIN.fullmatch(cell.id)
    failures = dict(_find_failures(by_name))
    broken = frozenset(name for name in failures if NODE not in name)
    # A module needs no entry if the failures of its tests are known.
    known = {name for name in broken if by_name[name].verdict is Verdict.KNOWN}
    return CellResults(
        release=cell.release, platform=plain[1] if plain else "", standard=standard,
        failures={name: failure for name, failure in failures.items() if name not in known},
        unknown=frozenset(n for n, record in by_name.items() if record.verdict is Verdict.FLAKY),
        broken=broken,
    )  # fmt: skip


def _find_failures(by_name: Mapping[str, Record]) -> Iterator[tuple[str, TestFailure]]:
    for name, record in by_name.items():
        # A failure that the suite itself expects (xfail) needs no entry.
        failed = record.outcome.observed and record.outcome is not Outcome.OK
        if failed and record.verdict is not Verdict.FLAKY and XFAIL not in record.artifacts:
            error = record.error or ErrorInfo(type="", message="")
            yield name, TestFailure(record.outcome, error)
