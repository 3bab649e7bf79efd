"""The history in goldens: changes from release to release, compatibility, recorded outcomes."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.engine.record_judge import name_golden_variant
from conformance.golden.layout import ENDING
from conformance.golden.span_change import find_span_changes
from conformance.golden.spans import lookup
from conformance.golden.store import GoldenStore
from conformance.judge.ir import find_changed_facts
from conformance.model.value import to_python

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.corpus.behaviour_changes import ShownBy
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
    """A change of what is recorded of a case.

    Attributes:
        case: The case.
        release: The first release with what is recorded since.
        last: The last one recorded before.
        shown_by: What changed.
        endings: How the case ended before and since, where that changed.
        facts: Its facts before and since, where these changed.
    """

    case: Case
    release: str
    last: str
    shown_by: ShownBy
    endings: tuple[Content, Content] | None = None
    facts: tuple[Facts, Facts] | None = None


def find_golden_changes(cases: Iterable[Case]) -> Iterator[GoldenChange]:
    """Yield what the goldens say changed, on the CPU, or where a case is recorded most.

    Facts that one side leaves unsaid are no change.

    Args:
        cases: The cases.

    Raises:
        GoldenError: If a golden is corrupt.
    """
    store_of = cache(GoldenStore)
    for case in cases:
        store = store_of(case.families)
        document = store.document(case)
        if document is None or document.tainted:
            continue
        for change in find_span_changes(document.variants[choose_main_variant(document)]):
            found = _make_change(store, case, change)
            if found.facts is None or any(find_changed_facts(*found.facts)):
                yield found


def choose_main_variant(document: GoldenDocument) -> str:
    """Return the cell variant whose history is shown for a case.

    Args:
        document: Its goldens.
    """
    if MAIN in document.variants:
        return MAIN
    return max(sorted(document.variants), key=lambda name: len(document.variants[name]))


def _make_change(store: GoldenStore, case: Case, change: SpanChange) -> GoldenChange:
    before, after = change.before.content, change.after.content
    ending, facts = change.track == ENDING, change.track == "facts"
    return GoldenChange(
        case=case,
        release=change.release,
        last=change.before.last,
        shown_by=change.shown_by,
        endings=(store.ending(case, before), store.ending(case, after)) if ending else None,
        facts=(store.facts(case, before), store.facts(case, after)) if facts else None,
    )


class ReleasePair(NamedTuple):
    """Two releases.

    Attributes:
        writer: The one that made something.
        reader: The one that takes it.
    """

    writer: str
    reader: str


class LoadResult(NamedTuple):
    """The result of loading in one release what another one exported.

    Attributes:
        text: Result as the case spells it, e.g. `right`.
        promised: Whether it is promised to be right.
    """

    text: str
    promised: bool


def find_compatibility(
    cases: Iterable[Case], names: Sequence[str], releases: Iterable[str]
) -> Mapping[str, Mapping[ReleasePair, LoadResult]]:
    """Return what the goldens have, by parameter.

    Args:
        cases: All cases of a family.
        names: Names of those that are read; what the first says is promised.
        releases: The releases that read.

    Raises:
        GoldenError: If a golden is corrupt.
    """
    readers = tuple(releases)
    store_of = cache(GoldenStore)
    found: dict[str, dict[ReleasePair, LoadResult]] = defaultdict(dict)
    for case in cases:
        if case.name not in names:
            continue
        store = store_of(case.families)
        parameter = case.id.partition("[")[2].removesuffix("]")
        for reader in readers:
            entry = store.lookup(case, MAIN, reader)
            if entry is None or not entry.exact or entry.value is None:
                continue
            for leaf in entry.value.leaves:
                made = _MADE_BY.fullmatch(leaf.path)
                if made is not None:
                    result = LoadResult(str(to_python(leaf)), case.name == names[0])
                    found[parameter][ReleasePair(made[1], reader)] = result
    return found


def find_recorded_outcomes(plan: Plan) -> Iterator[tuple[Job, str]]:
    """Yield the jobs whose release lies within a recorded span, each with what names its ending.

    Args:
        plan: The jobs.

    Raises:
        GoldenError: If a file is corrupt.
    """
    store_of = cache(GoldenStore)
    for job in plan.jobs:
        document = store_of(job.case.families).document(job.case)
        if document is None:
            continue
        spans = document.variants.get(name_golden_variant(job), {}).get(ENDING, ())
        found = lookup(spans, job.planned.release)
        if found is not None and found.exact:
            yield job, found.span.content
