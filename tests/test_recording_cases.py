"""Cases have a reference or a claim, or say why they only record."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.corpus.case_selection import select_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
RECORDING = 251
"""Ids of cases that only record; each is one that no law can find wrong."""
JUDGED = {"Observed": 2, "Program": 4}
"""What a case returns, and the place of the reference among its arguments."""


@cache
def functions(file: Path) -> dict[str, ast.FunctionDef]:
    """Return the functions of a topic and of the helpers beside it, by name."""
    found: dict[str, ast.FunctionDef] = {}
    for one in (*sorted(file.parent.glob("_*.py")), file):
        tree = ast.parse(one.read_text(encoding="utf-8"))
        found |= {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    return found


@cache
def helpers(file: Path) -> frozenset[str]:
    """Return the names of the functions of a topic that are no cases."""
    return frozenset(name for name, one in functions(file).items() if not is_case(one))


def is_case(function: ast.FunctionDef) -> bool:
    """Say whether a function is marked as a case."""
    return any(ast.unparse(one).startswith(("probe", "program")) for one in function.decorator_list)


def calls(file: Path, case: str) -> Iterator[ast.Call]:
    """Yield the calls of a case and of the helpers that it names, however deep."""
    left, seen = [case], {case}
    while left:
        for node in ast.walk(functions(file)[left.pop()]):
            if isinstance(node, ast.Call):
                yield node
            if isinstance(node, ast.Name) and node.id in helpers(file) and node.id not in seen:
                seen.add(node.id)
                left.append(node.id)


@cache
def has_reference(file: Path, case: str) -> bool:
    """Say whether a case hands a reference over anywhere."""
    return any(
        isinstance(call.func, ast.Name)
        and call.func.id in JUDGED
        and (
            len(call.args) >= JUDGED[call.func.id]
            or any(keyword.arg == "reference" for keyword in call.keywords)
        )
        for call in calls(file, case)
    )


def test_a_case_without_reference_and_claim_says_that_it_only_records() -> None:
    """In `conformance list` and on its page; one with a reference does not."""
    cases = select_cases((), ROOT / "cases")
    judged = {
        case.id
        for case in cases
        if case.facts or case.same_as or case.given or has_reference(case.file, case.name)
    }
    assert [case.id for case in cases if case.id in judged and case.records] == []
    recording = [case.id for case in cases if case.id not in judged]
    assert [case.id for case in cases if case.records] == recording
    assert len(recording) == RECORDING
