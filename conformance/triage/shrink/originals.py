"""The checks of a case before it is cut, and the behavior to keep. Pure."""

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
    SameErrorAbsence,
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
    """Refuse a case that gives different results.

    Args:
        case: The case.
        cell: Id of the cell.
        results: Its results.

    Raises:
        UsageError: If they differ, with counts.
    """
    first = results[0].observation
    tolerance = Tolerance.of(case)
    if not any(find_disagreement(first, other.observation, tolerance) for other in results[1:]):
        return
    counts = Counter(shorten(result.ending) for result in results)
    listed = "; ".join(f"{count} of {len(results)}: {end}" for end, count in counts.items())
    listed = listed if len(counts) > 1 else "its values differ"
    raise UsageError(
        f"{case.id} on {cell} is flaky: {listed}; make it deterministic first (seeds, threads)"
    )


def _find_unmet_claim(case: Case, result: CaseResult) -> str:
    """Return the claim of a case that its IR does not meet; empty if it deviates otherwise."""
    facts = result.stored_job.record.facts
    # The observation of a candidate has no facts: they are read only where a criterion needs them.
    _, reasons = judge_conformance(case, replace(result.observation, facts=facts))
    names = [name for name in case.facts if reasons and reasons[0].startswith(f"fact {name} ")]
    return names[0] if names else ""


def refuse_conforming(case: Case, cell: str, result: CaseResult) -> None:
    """Refuse a case that shows nothing to keep.

    Args:
        case: The case.
        cell: Id of the cell.
        result: Its result.

    Raises:
        UsageError: If it conforms, was not run, has no reference or claim, or only one of its
            variants deviates.
    """
    observation = result.observation
    if result.outcome in SILENT:
        raise UsageError(
            f"{case.id} on {cell} was not run: {shorten(result.ending)}; name another cell"
        )
    # The program itself decides: candidates are run without variants.
    conforms, _ = judge_conformance(case, replace(observation, variants={}))
    if conforms is not Conformance.DEVIATES and (broken := compare_variants(case, observation)):
        raise UsageError(
            f"{case.id} on {cell} deviates only in {' and '.join(broken)}, of its same_as: a case "
            "is cut by the result of the program itself; write the variant as a program of its own"
        )
    if conforms is Conformance.CONFORMS:
        raise UsageError(
            f"{case.id} conforms on {cell}: nothing to keep; name a cell in which it deviates, or "
            "a fact to keep with --fact"
        )
    if result.outcome is Outcome.OK and conforms is Conformance.UNKNOWN:
        raise UsageError(
            f"{case.id} on {cell} runs, and has no reference or claim; give it a reference, "
            "or name a fact to keep with --fact"
        )


def choose_criterion(
    case: Case, text: str, bad: CaseResult, good: CaseResult | None, fact: str = ""
) -> Criterion[CaseResult]:
    """Return the criterion of candidates.

    Args:
        case: The case.
        text: Text of the case.
        bad: Its result in the bad cell.
        good: Its result in the good cell, if there is one.
        fact: Name of the fact to keep, empty for none.

    Raises:
        UsageError: If there is no such fact, or the cells do not differ in it.
    """
    name = fact or (_find_unmet_claim(case, bad) if bad.outcome is Outcome.OK else "")
    if name:
        criterion = SameFact(name, bad, good)
        about = criterion.about  # raises UsageError for a fact that the IR does not have
        if good is not None and criterion.may_hold(good):
            raise UsageError(f"{about}: it is the same in both cells, expected it to differ")
        return criterion
    if bad.outcome is not Outcome.OK:
        # A message may quote names of the case, which cuts rename or remove.
        return SameFailure(bad, _collect_names(text), has_good_cell=good is not None)
    if good is None:
        raise AssertionError("a case with a wrong value is refused without a good cell")
    if isinstance(bad.observation.reference, ExpectedError):
        return SameErrorAbsence(good)
    return SameWrongValue(bad, good, Tolerance.of(case))


def _collect_names(text: str) -> frozenset[str]:
    """Return the names and the strings of a case: its error message may quote them."""
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
