"""The history that goldens record: changes between releases, compatibility, outcomes."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.engine.record_judge import name_golden_variant
from conformance.golden.layout import ENDING
from conformance.golden.span_change import find_span_changes
from conformance.golden.spans import find_span
from conformance.golden.store import GoldenStore
from conformance.judge.ir import find_changed_facts
from conformance.model.value import to_python

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.corpus.behaviour_changes import BehaviourChange, ShownBy
    from conformance.engine.job import Job
    from conformance.engine.plan import Plan
    from conformance.golden.contents import Content
    from conformance.golden.document import GoldenDocument
    from conformance.golden.span_change import SpanChange
    from conformance.model.case import Case

    Facts = Mapping[str, Any]


MAIN: Final = "cpu"
"""Cell variant whose history is shown, if a case has it."""
_MADE_BY: Final = re.compile(r"out\['([\d.]+)'\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenChange:
    """A change of the recorded behaviour of a case.

    Attributes:
        case: Case whose goldens change.
        release: First release with the new behaviour.
        last: Last recorded release with the old behaviour.
        shown_by: Artifact that changed.
        platform: Platform on which it changed, empty for the main one of the case.
        endings: Old and new outcome or error, None if that is the same.
        facts: Old and new facts, None if they are the same.
    """

    case: Case
    release: str
    last: str
    shown_by: ShownBy
    platform: str = ""
    endings: tuple[Content, Content] | None = None
    facts: tuple[Facts, Facts] | None = None


def find_golden_changes(
    cases: Iterable[Case], declared: Iterable[BehaviourChange] = ()
) -> Iterator[GoldenChange]:
    """Yield the changes that goldens record on the CPU, or on the cell with the most spans.

    Facts that only one side states are no change.

    Args:
        cases: Cases whose goldens are read.
        declared: Declared changes, whose platforms are looked at in addition.

    Raises:
        GoldenError: If a golden is corrupt.
    """
    platforms: dict[str, set[str]] = defaultdict(set)
    for line in declared:
        for name in line.cases if line.platform else ():
            platforms[name].add(line.platform)
    # One store for each folder of families: it remembers the documents that it has read.
    store_of = cache(GoldenStore)
    for case in cases:
        store = store_of(case.families)
        document = store.load_document(case)
        # Forms of different versions differ for reasons of the harness.
        if document is None or document.tainted:
            continue
        variants = {"": document.variants[choose_main_variant(document)]}
        variants |= {name: document.variants.get(name, {}) for name in sorted(platforms[case.id])}
        for platform, tracks in variants.items():
            for change in find_span_changes(tracks):
                golden_change = _make_change(store, case, platform, change)
                # The files differ, but perhaps in facts that a release of the harness has added.
                if golden_change.facts is None or any(find_changed_facts(*golden_change.facts)):
                    yield golden_change


def choose_main_variant(document: GoldenDocument) -> str:
    """Return the cell variant whose history is shown for a case.

    Args:
        document: Goldens of the case.
    """
    if MAIN in document.variants:
        return MAIN
    # Sorted first, so that the choice between equal counts does not depend on the file.
    return max(sorted(document.variants), key=lambda name: len(document.variants[name]))


def _make_change(store: GoldenStore, case: Case, platform: str, change: SpanChange) -> GoldenChange:
    before, after = change.before.content, change.after.content
    ending, facts = change.track == ENDING, change.track == "facts"
    return GoldenChange(
        case=case,
        release=change.release,
        last=change.before.last,
        shown_by=change.shown_by,
        platform=platform,
        endings=(store.load_ending(case, before), store.load_ending(case, after))
        if ending
        else None,
        facts=(store.load_facts(case, before), store.load_facts(case, after)) if facts else None,
    )


class ReleasePair(NamedTuple):
    """The two releases of an export.

    Attributes:
        writer: Release that exported the program.
        reader: Release that loads it.
    """

    writer: str
    reader: str


class LoadResult(NamedTuple):
    """The result of loading an export of another release.

    Attributes:
        text: Result as the case spells it, e.g. `right`.
        promised: Whether JAX promises that the pair is compatible.
    """

    text: str
    promised: bool


def find_compatibility(
    cases: Iterable[Case], names: Sequence[str], releases: Iterable[str]
) -> Mapping[str, Mapping[ReleasePair, LoadResult]]:
    """Return the recorded results of loading exports, by parameter of the case.

    Args:
        cases: All cases of a family.
        names: Names of the cases with such results; pairs of the first case are promised.
        releases: Releases that load.

    Raises:
        GoldenError: If a golden is corrupt.
    """
    readers = tuple(releases)
    store_of = cache(GoldenStore)
    # A case has one golden for each reader, with a leaf for each writer: `out['0.4.35']`.
    found: dict[str, dict[ReleasePair, LoadResult]] = defaultdict(dict)
    for case in cases:
        if case.name not in names:
            continue
        store = store_of(case.families)
        parameter = case.id.partition("[")[2].removesuffix("]")
        for reader in readers:
            entry = store.lookup(case, MAIN, reader)
            # Not the golden of an older reader: only recorded pairs are shown.
            if entry is None or not entry.exact or entry.value is None:
                continue
            for leaf in entry.value.leaves:
                made = _MADE_BY.fullmatch(leaf.path)
                if made is not None:
                    result = LoadResult(str(to_python(leaf)), case.name == names[0])
                    found[parameter][ReleasePair(made[1], reader)] = result
    return found


def find_recorded_outcomes(plan: Plan) -> Iterator[tuple[Job, str]]:
    """Yield each job whose release is within a recorded span, with the id of its recorded ending.

    Args:
        plan: Plan with the jobs.

    Raises:
        GoldenError: If a file is corrupt.
    """
    store_of = cache(GoldenStore)
    for job in plan.jobs:
        document = store_of(job.case.families).load_document(job.case)
        if document is None:
            continue
        spans = document.variants.get(name_golden_variant(job), {}).get(ENDING, ())
        found = find_span(spans, job.planned.release)
        if found is not None and found.exact:
            yield job, found.span.content
