"""Cases before they are cut: whether there is anything to keep, and what. Pure."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.errors import UsageError
from conformance.judge.agreement import find_disagreement
from conformance.judge.conformance import judge_conformance
from conformance.judge.tolerance import Tolerance
from conformance.judge.variants import compare_variants
from conformance.model.observation import ExpectedError
from conformance.model.outcome import Conformance, Outcome
from conformance.search.equivalence import SILENT, shorten
from conformance.triage.shrink.criteria import (
    MissingError,
    SameFact,
    SameFailure,
    SameWrongValue,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.model.case import Case
    from conformance.triage.shrink.criteria import Criterion
    from conformance.triage.shrink.results import CaseResult


def refuse_flaky(case: Case, cell: str, results: Sequence[CaseResult]) -> None:
    """Refuse a case that does not show the same each time.

    Args:
        case: The case.
        cell: Where it was tried.
        results: Its results.

    Raises:
        UsageError: If it does not, with counts.
    """
    first = results[0].observation
    tolerance = Tolerance.of(case)
    if not any(find_disagreement(first, one.observation, tolerance) for one in results[1:]):
        return
    counts = Counter(shorten(one.ending) for one in results)
    told = "; ".join(f"{count} of {len(results)}: {ending}" for ending, count in counts.items())
    told = told if len(counts) > 1 else "its values differ"
    raise UsageError(
        f"{case.id} on {cell} is flaky: {told}; make it deterministic first (seeds, threads)"
    )


def _deviating_fact(case: Case, result: CaseResult) -> str:
    """Return the fact that a case claims and does not state; empty if it deviates otherwise."""
    stated = result.stored.record.facts
    _, reasons = judge_conformance(case, replace(result.observation, facts=stated))
    names = [name for name in case.facts if reasons and reasons[0].startswith(f"fact {name} ")]
    return names[0] if names else ""


def refuse_conforming(case: Case, cell: str, result: CaseResult) -> None:
    """Refuse a case that shows nothing to be kept.

    Args:
        case: The case.
        cell: Where it was tried.
        result: Its result.

    Raises:
        UsageError: If it conforms, has nothing that says what it should do, or says nothing; also
            if nothing but another way deviates.
    """
    said, observation = shorten(result.ending), result.observation
    if result.outcome in SILENT:
        raise UsageError(f"{case.id} on {cell} says nothing: {said}; name another cell")
    conforms, _ = judge_conformance(case, replace(observation, ways={}))
    if conforms is not Conformance.DEVIATES and (broken := compare_variants(case, observation)):
        raise UsageError(
            f"{case.id} on {cell} deviates in {' and '.join(broken)} alone, of its same_as: a case "
            "is cut by what the program itself does; write the other way as a program of its own"
        )
    if conforms is Conformance.CONFORMS:
        raise UsageError(
            f"{case.id} conforms on {cell}: nothing to keep; name a cell in which it deviates, or "
            "a fact to keep with --fact"
        )
    if result.outcome is Outcome.OK and conforms is Conformance.UNKNOWN:
        raise UsageError(
            f"{case.id} on {cell} runs, and nothing says what it should do; give it a reference, "
            "or name a fact to keep with --fact"
        )


def choose_criterion(
    case: Case, text: str, bad: CaseResult, good: CaseResult | None, fact: str = ""
) -> Criterion[CaseResult]:
    """Return what must stay.

    Args:
        case: The case.
        text: All that it is made of.
        bad: What it shows.
        good: What it shows in the other cell, if there is one.
        fact: The fact to keep, if one is named.

    Raises:
        UsageError: If there is no such fact, or the cells do not differ in it.
    """
    named = fact or (_deviating_fact(case, bad) if bad.outcome is Outcome.OK else "")
    if named:
        criterion = SameFact(named, bad, good)
        told = criterion.about  # refuses a fact that is not there
        if good is not None and criterion.may_hold(good):
            raise UsageError(f"{told}: both cells state the same, expected them to differ")
        return criterion
    if bad.outcome is not Outcome.OK:
        return SameFailure(bad, _identifiers(text), guarded=good is not None)
    assert good is not None  # noqa: S101 - the case is refused without it
    if isinstance(bad.observation.reference, ExpectedError):
        return MissingError(good)
    return SameWrongValue(bad, good, Tolerance.of(case))


def _identifiers(text: str) -> frozenset[str]:
    """Return the names and the texts of a case."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case (
                ast.Name(id=name)
                | ast.arg(arg=name)
                | ast.FunctionDef(name=name)
                | ast.Constant(value=str(name))
            ):
                found.add(name)
            case _:
                pass
    return frozenset(found)
