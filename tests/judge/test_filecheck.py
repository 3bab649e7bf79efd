"""FileCheck patterns against a text in canonical form."""

from __future__ import annotations

import pytest

from conformance.judge.filecheck import run_filecheck

TEXT = """\
conformance-ir 1 hlo abc

entry {
  %parameter.1 = f32[2,16] parameter(), index=0
  %all-reduce.1 = f32[2,16] all-reduce(%parameter.1), replica_groups=[[0,1],[2,3]], to_apply=@add
  %multiply.1 = f32[2,16] multiply(%parameter.1, %all-reduce.1)
  return %multiply.1
}
"""


@pytest.mark.parametrize(
    "pattern",
    [
        "CHECK: all-reduce",
        "CHECK: all-reduce\nCHECK-NOT: all-gather",
        "COM: in two groups\n  CHECK: all-reduce({{.*}}), replica_groups=[[0,1],[2,3]]",
        "CHECK: parameter()\nCHECK-NEXT: all-reduce\nCHECK-SAME: to_apply=@add",
        "CHECK: [[SUM:%all-reduce[.0-9]*]] =\nCHECK: multiply({{.*}}[[SUM]])",
        "CHECK-DAG: multiply\nCHECK-DAG: parameter()\nCHECK: return",
        "CHECK-LABEL: entry {\nCHECK-COUNT-2: f32[2,16]",
        "CHECK{LITERAL}: [[0,1],[2,3]]",
        "CHECK-NOT: to_apply\nCHECK: replica_groups={{.*}}",
        "CHECK: return\nCHECK: }\nCHECK-EMPTY:",
    ],
)
def test_a_matching_pattern_has_no_problem(
    pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is printed."""
    assert not run_filecheck(TEXT, pattern)
    assert not "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("CHECK: all-gather", "`CHECK: all-gather` finds nothing in lines 1 to 8"),
        ("CHECK: multiply\nCHECK: parameter()", "`CHECK: parameter()` finds nothing in lines 6 to"),
        (
            "CHECK-NOT: all-reduce",
            "`CHECK-NOT: all-reduce` finds line 5: %all-reduce.1 = f32[2,16] all-reduce(%para",
        ),
        (
            "CHECK: parameter()\nCHECK-NEXT: multiply",
            "`CHECK-NEXT: multiply` does not match line 5: %all-reduce.1 =",
        ),
        (
            "CHECK: multiply\nCHECK-SAME: add",
            "`CHECK-SAME: add` finds nothing in the rest of line 6: %multiply.1 =",
        ),
        ("CHECK: }\nCHECK-NEXT: x", "`CHECK-NEXT: x` finds no line after the last, 8: }"),
        ("CHECK-COUNT-3: multiply(", "`CHECK-COUNT-3: multiply(` finds nothing in lines 6 to 8"),
        ("CHECK-DAG: return\nCHECK-DAG: tanh", "`CHECK-DAG: tanh` finds nothing in lines 1 to 8"),
        ("CHECK-LABEL: main {", "`CHECK-LABEL: main {` finds nothing in lines 1 to 8"),
        ("CHECK: [[X]]", "`CHECK: [[X]]`: variable X referenced before assignment"),
        ("CHECK: [[X:q*]]", "`CHECK: [[X:q*]]`: nothing captured for variable X"),
    ],
)
def test_a_mismatch_names_the_check_and_the_searched_lines(pattern: str, said: str) -> None:
    """The check is quoted as written."""
    assert run_filecheck(TEXT, pattern).startswith(said)


def test_nothing_is_printed_on_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """The package would print to stdout and stderr."""
    assert run_filecheck(TEXT, "CHECK-DAG: return\nCHECK: all-reduce")
    assert run_filecheck(TEXT, "CHECK: [[X:q*]]")
    assert not "".join(capsys.readouterr())


def test_an_empty_text_matches_no_check() -> None:
    """A CHECK-NOT needs a text, too."""
    assert run_filecheck("", "CHECK-NOT: all-gather")
