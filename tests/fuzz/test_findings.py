"""Findings: dated, with the result on each release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from conformance.fuzz.comparison import Kind, ResultDifference
from conformance.fuzz.evaluation import Divergence
from conformance.fuzz.finding import Finding, ReleaseResult
from conformance.fuzz.findings import date, make_finding, select_kinds
from conformance.fuzz.generation import generate
from conformance.fuzz.strategies import ProgramSpace
from tests.fuzz.test_batches import WorkerExecutor, program

if TYPE_CHECKING:
    from conformance.fuzz.evaluation import Evaluator
    from conformance.fuzz.program import FuzzProgram
    from tests.workbench import Bench

FIELDS: dict[str, Any] = {
    "id": "abc", "detail": "float32", "example": "", "operations": ("step",), "transforms": (),
    "script": "x = 1\n", "choices": "00",
}  # fmt: skip


@pytest.mark.parametrize(
    ("oracle", "code", "twin", "expected"),
    [
        ("numpy", "x0 * 1.001", "x0 * 1.0", (True, False, "")),
        ("numpy", "x0 * 1.0", "x0 * 1.0", (False, True, "")),
        (
            "eager", "x0 * (2 if type(x0).__name__ == 'ArrayImpl' else 1)", "",
            (True, None, "float32[3] [2., 4., 6.]"),
        ),
        ("eager", "x0 * 1", "", (False, None, "float32[3] [1., 2., 3.]")),
        ("release", "x0 * 1", "", (False, None, "")),
    ],
)  # fmt: skip
def test_a_dated_finding_has_the_result_on_each_release(
    bench: Bench, oracle: str, code: str, twin: str, expected: tuple[bool, bool | None, str]
) -> None:
    """Whether the release shows it, and whether NumPy agrees."""
    finding = Finding(oracle=oracle, kind="value", **FIELDS)
    dated = date(finding, program(code, twin), WorkerExecutor(bench), [bench.planned])
    release = bench.planned.release
    assert dated.releases == ((release,) if expected[0] else ())
    (result,) = dated.results
    assert (result.release, result.outcome) == (release, "ok")
    assert (result.differs, result.right, result.other) == expected
    assert result.text.startswith("float32[3] [1.")


def test_a_release_that_lacks_an_operation_shows_nothing(bench: Bench) -> None:
    """Its outcome is unsupported."""
    finding = Finding(oracle="release", kind="outcome", **FIELDS)
    missing = program("jnp.no_such_function(x0)")
    dated = date(finding, missing, WorkerExecutor(bench), [bench.planned])
    (result,) = dated.results
    assert result.outcome == "unsupported"
    assert result.text.startswith("AttributeError: module 'jax.numpy' has no attribute")
    assert dated.releases == ()


@pytest.mark.parametrize(
    ("kind", "found", "shown"),
    [
        ("nan", ["", "value", "", "nan"], {"nan"}),
        ("value", ["", "value", "sharding", "nan"], {"value", "nan"}),
        ("outcome", ["", "error", "", "outcome"], {"outcome"}),
        ("error", ["", "outcome", "", "outcome"], {"outcome"}),
        ("value", ["", ""], set()),
    ],
)
def test_a_finding_is_dated_by_its_kind_of_difference(
    kind: str, found: list[str], shown: set[str]
) -> None:
    """If there is such a difference between two neighbouring releases."""
    assert select_kinds(kind, found) == shown


def test_a_result_of_an_earlier_log_has_defaults() -> None:
    """Only release, outcome and text are required."""
    result = ReleaseResult(release="0.6.0", outcome="ok", text="1.0")
    assert (result.other, result.differs, result.right) == ("", False, None)


class _SlowEvaluator:
    """Finds that each program takes twenty seconds."""

    def confirm(self, _: FuzzProgram, oracle: str, patience: float) -> Divergence | None:
        """Return that a program hangs, if it has less time."""
        difference = ResultDifference(kind=Kind.HANG, detail="timeout")
        return Divergence(oracle=oracle, difference=difference) if patience < 20 else None


def test_a_slow_program_does_not_hang() -> None:
    """It gets more time before it is a finding."""
    generated = generate(ProgramSpace(), 1, 10)[0]
    evaluator = cast("Evaluator", _SlowEvaluator())
    divergence = evaluator.confirm(generated.program, "process", 10)
    assert divergence is not None
    assert make_finding(evaluator, generated, divergence) is None
