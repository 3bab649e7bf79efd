"""Constants and defaults of a case file: what several cases share is written once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.corpus.discovery import BrokenCasesError

if TYPE_CHECKING:
    from .conftest import Write

SHARED = """
OLD = "jax<0.6"
NO_RULE = deviation(OLD, error="ValueError", reason="no rule")
LATER = [deviation("jax>=0.8", outcome="crashed")]

@program(deviations=[NO_RULE])
def first(env): ...

@program(devices=2, deviations=[NO_RULE, *LATER], params={"a": {}, "b": {}})
def second(env): ...
"""


def test_cases_share_a_deviation(write: Write) -> None:
    """A constant may be an element, a list, or a part of another constant."""
    first, second, _ = write(family__topic=SHARED)
    (deviation,) = first.deviations
    assert (deviation.releases, deviation.error, deviation.reason) == (
        "<0.6", "ValueError", "no rule",
    )  # fmt: skip
    assert second.deviations[0] == deviation
    assert [one.outcome for one in second.deviations] == ["raised", "crashed"]


def test_a_constant_is_any_literal(write: Write) -> None:
    """Parameters, claims and platforms have names, too."""
    (case,) = write(
        family__topic=(
            "CPU: tuple = ('cpu',)\nCLAIM = {'collectives': {}}\n"
            "@program(platforms=CPU, facts=CLAIM)\ndef name(env): ...\n"
        )
    )
    assert (case.platforms, case.facts) == (("cpu",), {"collectives": {}})


def test_defaults_apply_where_a_decorator_is_silent(write: Write) -> None:
    """Claims on a compiled program are no default of a probe."""
    first, second = write(
        family__topic=(
            "defaults(devices=4, source='a/b#1', facts={'collectives': {}})\n"
            "@program(devices=2)\ndef first(env): ...\n"
            "@probe()\ndef second(env): ...\n"
        )
    )
    assert (first.devices, first.source, first.facts) == (2, "a/b#1", {"collectives": {}})
    assert (second.devices, second.source, second.facts) == (4, "a/b#1", {})


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("@probe(deviations=[GONE])", 1, "`deviations` has `GONE`, expected deviation(...) or a"),
        ("A = 1\nA = 2\n@probe(devices=A)", 3, "`devices` is `A`, expected a literal or"),
        ("A = A\n@probe(devices=A)", 1, "`devices` is `A`, expected a literal or"),
        ("A = deviation(error=1)\n@probe(deviations=[A])", 1, "expected `str`, got `int`"),
        ("defaults(devices=0)\n@probe()", 1, "defaults: expected `int` >= 1"),
        ("defaults(4)\n@probe()", 1, "defaults() takes keywords only"),
        ("defaults(device=4)\n@probe()", 1, "unknown keyword `device`; did you mean `devices`?"),
        ("defaults(params={'a': {}})\n@probe()", 1, "defaults() has no `params`"),
        (f"defaults(timeout={'-' * 800}1)\n@probe()", 1, "defaults() are nested too deeply"),
        ("defaults()\ndefaults()\n@probe()", 2, "a second call of defaults(); a file has one"),
    ],
)  # fmt: skip
def test_an_error_has_the_line_of_the_value(
    write: Write, source: str, line: int, message: str
) -> None:
    """It is in the constant, not in each decorator that names it."""
    with pytest.raises(BrokenCasesError) as caught:
        write(family__topic=f"{source}\ndef name(env): ...\n")
    (error,) = caught.value.errors
    assert str(error).startswith(f"{error.file}:{line}: ")
    assert message in str(error)
