"""A case cut down to what makes it fail, give a wrong value, or state a fact."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from conformance.corpus.discover import discover
from conformance.engine.job import Job
from conformance.errors import UsageError
from conformance.judge.agreement import disagreement
from conformance.judge.conformance import conformance
from conformance.judge.tolerance import Tolerance
from conformance.judge.ways import broken_ways
from conformance.model.observation import ExpectedError
from conformance.model.outcome import Conformance, Outcome
from conformance.search.failures import SILENT, quoted
from conformance.triage.shrink.question import RunsAnyway, SameFact, SameFailure, SameMistake
from conformance.triage.shrink.text import (
    laid_out,
    lines_of_code,
    literal,
    with_claim,
    with_reference,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.engine.local import CellWorker
    from conformance.model.case import Case
    from conformance.model.value import Value
    from conformance.triage.shrink.prober import Prober
    from conformance.triage.shrink.question import Question
    from conformance.triage.shrink.shown import Shown

TIMES: Final = 3
"""How often a case is tried before it is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """How large a case is.

    Attributes:
        lines: Lines of code it takes, helpers included.
        devices: Devices it needs.
        equations: Equations of its jaxpr; None where it was not traced.
        elements: Elements of its arguments; None likewise.
    """

    lines: int
    devices: int
    equations: int | None = None
    elements: int | None = None


def measured(text: str, devices: int, shown: Shown) -> Measures:
    """Return how large a case is.

    Args:
        text: Its file.
        devices: Devices it needs.
        shown: What came of it.
    """
    equations, elements = shown.measures or (None, None)
    return Measures(
        lines=lines_of_code(text), devices=devices, equations=equations, elements=elements
    )


def refuse_flaky(case: Case, cell: str, shown: Sequence[Shown]) -> None:
    """Refuse a case that does not show the same each time.

    Args:
        case: The case.
        cell: Where it was tried.
        shown: What it showed.

    Raises:
        UsageError: If it does not, with counts.
    """
    first = shown[0].observation
    tolerance = Tolerance.of(case)
    if not any(disagreement(first, one.observation, tolerance) for one in shown[1:]):
        return
    counts = Counter(quoted(one.ending) for one in shown)
    told = "; ".join(f"{count} of {len(shown)}: {ending}" for ending, count in counts.items())
    told = told if len(counts) > 1 else "its values differ"
    raise UsageError(
        f"{case.id} on {cell} is flaky: {told}; make it deterministic first (seeds, threads)"
    )


def deviating_fact(case: Case, shown: Shown) -> str:
    """Return the fact that a case claims and does not state; empty if it deviates otherwise."""
    stated = shown.side.record.facts
    _, reasons = conformance(case, replace(shown.observation, facts=stated))
    names = [name for name in case.facts if reasons and reasons[0].startswith(f"fact {name} ")]
    return names[0] if names else ""


def refuse_what_conforms(case: Case, cell: str, shown: Shown) -> None:
    """Refuse a case that shows nothing to be kept.

    Args:
        case: The case.
        cell: Where it was tried.
        shown: What it showed.

    Raises:
        UsageError: If it conforms, has nothing that says what it should do, or says nothing; also
            if nothing but another way deviates.
    """
    said, observation = quoted(shown.ending), shown.observation
    if shown.outcome in SILENT:
        raise UsageError(f"{case.id} on {cell} says nothing: {said}; name another cell")
    conforms, _ = conformance(case, replace(observation, ways={}))
    if conforms is not Conformance.DEVIATES and (broken := broken_ways(case, observation)):
        raise UsageError(
            f"{case.id} on {cell} deviates in {' and '.join(broken)} alone, of its same_as: a case "
            "is cut by what the program itself does; write the other way as a program of its own"
        )
    if conforms is Conformance.CONFORMS:
        raise UsageError(
            f"{case.id} conforms on {cell}: nothing to keep; name a cell in which it deviates, or "
            "a fact to keep with --fact"
        )
    if shown.outcome is Outcome.OK and conforms is Conformance.UNKNOWN:
        raise UsageError(
            f"{case.id} on {cell} runs, and nothing says what it should do; give it a reference, "
            "or name a fact to keep with --fact"
        )


def needs_good_cell(shown: Shown) -> bool:
    """Say whether what a case shows can only be told beside a cell in which it conforms."""
    return shown.outcome is Outcome.OK


def question_about(
    case: Case, text: str, bad: Shown, good: Shown | None, fact: str = ""
) -> Question:
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
    named = fact or (deviating_fact(case, bad) if bad.outcome is Outcome.OK else "")
    if named:
        question = SameFact(named, bad, good)
        told = question.about  # refuses a fact that is not there
        if good is not None and question.may_hold(good):
            raise UsageError(f"{told}: both cells state the same, expected them to differ")
        return question
    if bad.outcome is not Outcome.OK:
        names = frozenset(_identifiers(text))
        return SameFailure(bad, names, guarded=good is not None)
    assert good is not None  # noqa: S101 - see needs_good_cell
    if isinstance(bad.observation.reference, ExpectedError):
        return RunsAnyway(good)
    return SameMistake(bad, good, Tolerance.of(case))


def _identifiers(text: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.Constant(value=str(name)):
                names.add(name)
            case _:
                pass
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """What is left, tried once more as a case file in workers of its own.

    Attributes:
        text: The file.
        same: Whether it still shows what was to be kept.
        alone: Whether its own reference tells so, without the other cell.
        measures: How large it is.
    """

    text: str
    same: bool
    alone: bool
    measures: Measures


def confirm(
    text: str, prober: Prober, workers: Sequence[CellWorker], folder: Path, head: Sequence[str]
) -> Confirmed:
    """Try what is left as a case file, in fresh workers, with what it should give written down.

    Args:
        text: What is left.
        prober: The search's, with its question.
        workers: Fresh workers of its cells.
        folder: Folder for the file; its name is the family's.
        head: What is said on top of the file.
    """
    case, question = prober.case, prober.question
    assert question is not None  # noqa: S101 - it was searched with
    referred = _referred(text, prober)
    tried: list[Confirmed] = []
    for number, one in enumerate(dict.fromkeys(filter(None, (referred, text)))):
        told = laid_out(one, head)
        file = folder / f"{case.topic}_{number}.py"
        file.write_text(told, encoding="utf-8")
        (found,) = discover([file])
        shown = [_alone(worker, found, prober) for worker in workers]
        same = question.holds(shown[0], shown[1] if len(shown) > 1 else None)
        deviates = [conformance(found, each.observation)[0] for each in shown]
        alone = shown[0].outcome is not Outcome.OK or (
            deviates[0] is Conformance.DEVIATES and Conformance.DEVIATES not in deviates[1:]
        )
        measures = measured(told, found.devices, shown[0])
        tried.append(Confirmed(text=told, same=same, alone=alone, measures=measures))
        if same and alone:
            break
    best = [one for one in tried if one.same] or tried
    return best[0]


def _alone(worker: CellWorker, case: Case, prober: Prober) -> Shown:
    return prober.ran(worker, Job(case=prober.unfiltered(case), planned=worker.planned, alone=True))


def _referred(text: str, prober: Prober) -> str | None:
    """Return a case with what the good cell gives as its reference."""
    shown = prober.shown(text)
    if len(shown) <= 1 or shown[0].outcome is not Outcome.OK:
        return None
    expected: Value | ExpectedError | None
    match prober.question:
        case SameFact(name=name):
            return with_claim(text, prober.case.name, name, shown[1].side.record.facts)
        case RunsAnyway(good=good):
            expected = good.observation.reference
        case SameMistake():
            expected = shown[1].value
        case _:
            return None
    told = None if expected is None else literal(expected)
    return None if told is None else with_reference(text, prober.case.name, told)
