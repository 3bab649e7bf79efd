"""Patterns that claim nothing, or nothing that can be matched, are found before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.corpus.claims import find_claim_problem


@pytest.mark.parametrize("ir", ["hlo", "stablehlo", "jaxpr"])
def test_a_valid_claim_has_no_problem(ir: str) -> None:
    """A pattern for any of the three IRs, with comments, variables and regular expressions."""
    pattern = "COM: why\n  CHECK-LABEL: entry\n\n  CHECK: [[X:%add[.0-9]*]] = {{f(16|32)}}"
    assert not find_claim_problem({ir: pattern})


@pytest.mark.parametrize(
    ("claimed", "problem"),
    [
        ("CHECK: add", "got 'CHECK: add', expected a pattern for some of hlo, stablehlo, jaxpr"),
        ({}, "got {}, expected a pattern"),
        ({"ptx": "CHECK: add"}, "got 'ptx', expected some of hlo, stablehlo, jaxpr"),
        ({"hlo": 3}, "hlo: got 3, expected text of lines such as `CHECK: all-reduce`"),
        ({"hlo": ""}, "hlo: no check, expected lines such as"),
        ({"hlo": "COM: only a comment"}, "hlo: no check, expected lines such as"),
        ({"hlo": "CHECK: a\nadd"}, "hlo: line 2 `add` is not a check, expected CHECK, "),
        ({"hlo": "CHECK-NEXTT: a"}, "hlo: line 1 `CHECK-NEXTT: a` is not a check, expected"),
        ({"hlo": "CHECK:"}, "hlo: line 1 `CHECK:`: found empty check string"),
        ({"hlo": "CHECK-COUNT-0: a"}, "hlo: line 1 `CHECK-COUNT-0: a`: invalid count"),
        ({"hlo": "CHECK: {{a"}, "hlo: line 1 `CHECK: {{a`: invalid regex block, no }}"),
        (
            {"hlo": "CHECK: a\nCHECK: {{[}}"},
            "hlo: line 2 `CHECK: {{[}}`: `[` is not a regular expr",
        ),
        (
            {"hlo": "CHECK: [[X:(]]"},
            "hlo: line 1 `CHECK: [[X:(]]`: `(` is not a regular expression",
        ),
        ({"hlo": "CHECK: {{[[:foo:]]}}"}, "hlo: line 1 `CHECK: {{[[:foo:]]}}`: `[[:foo:]]` is no"),
        ({"hlo": "CHECK: {{x[[:punct:]]}}"}, "hlo: can't translate posix regex"),
        ({"hlo": "CHECK: [[#X+1]]"}, "hlo: line 1 `CHECK: [[#X+1]]`: arithmetic on variables is"),
    ],
)
def test_a_problem_names_the_line_and_the_expectation(claimed: Any, problem: str) -> None:
    """In any part of the claim."""
    assert find_claim_problem(claimed).startswith(problem)
