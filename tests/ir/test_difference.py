"""The difference of two texts."""

from __future__ import annotations

import pytest

from conformance.ir.change import Change, Severity
from conformance.ir.difference import diff
from conformance.ir.graph import IrSyntaxError
from tests.ir.texts import LOOP, STEPS, hlo, stablehlo

PLAIN = hlo("%a = f32[4] sine(%x)", "%r = f32[4] divide(%a, %y)")
DONATED = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }"


def test_a_text_is_equal_to_itself() -> None:
    """All instructions match."""
    found = diff(PLAIN, PLAIN)
    assert (found.equal, found.neutral_equal, found.changes) == (True, True, ())
    assert (found.matched, found.aligned_share, found.severity) == (4, 1.0, None)


def test_another_grouping_is_structural() -> None:
    """The canonical forms are equal, and there is a single entry."""
    other = hlo("%c = f32[4] copy(%x)", "%a = f32[4] sine(%c)", "%r = f32[4] divide(%a, %y)")
    found = diff(PLAIN, other)
    assert (found.equal, found.neutral_equal, found.severity) == (False, True, "structural")
    assert [c.line for c in found.changes] == [
        "structural: other fusions, copies or annotations: copy 0 -> 1"
    ]


def test_another_passing_of_values_is_structural() -> None:
    """The same instructions, through other tuples or calls."""
    one = hlo("%a = f32[4] add(%x, %y)", "%r = f32[4] sine(%a)")
    two = one.replace("%x, %y)", "%y, %x)")
    (change,) = diff(one, two).changes
    assert "the same instructions" in change.title


def test_a_change_is_shown_with_an_example() -> None:
    """Where it is, and the lines before and after."""
    metadata = 'metadata={op_name="jit(f)/sin" source_file="f.py" source_line=3}'
    one = PLAIN.replace("sine(%x)", f"sine(%x), {metadata}")
    (change,) = diff(one, one.replace("sine(", "tanh(")).changes
    assert (change.kind, change.count, change.title) == ("replaced", 1, "sine -> tanh")
    assert change.where == "entry, jit(f)/sin, f.py:3"
    assert change.before[0] == "%a = f32[4] sine(%x)"
    assert change.after[0] == "%a = f32[4] tanh(%x)"


def test_the_place_of_a_change_names_its_loops() -> None:
    """From the inside out."""
    (change,) = diff(
        hlo(*LOOP, before=STEPS), hlo(*LOOP, before=STEPS.replace("multiply", "divide"))
    ).changes
    assert change.where == "while body"


def test_the_aligned_share_counts_pairs() -> None:
    """A low share makes entries unreliable."""
    found = diff(PLAIN, PLAIN.replace("sine", "tanh"))
    assert (found.matched, found.changed, found.unmatched) == (2, 1, 2)
    assert found.aligned_share == pytest.approx(0.6)


def test_a_change_of_donation_is_semantic() -> None:
    """Only the header differs."""
    found = diff(PLAIN, PLAIN.replace("HloModule m", DONATED))
    assert not found.neutral_equal
    assert [(c.about, c.title, c.severity) for c in found.changes] == [
        ("donation", "donation added", "semantic")
    ]


@pytest.mark.parametrize(
    ("one", "two", "severity"),
    [
        ("{devices=[2]0,1}", "{devices=[2]1,0}", "semantic"),
        ("{devices=[2]0,1}", "", "cosmetic"),
    ],
)
def test_shardings_of_parameters_are_compared(one: str, two: str, severity: str) -> None:
    """Two that differ, or one that is missing."""
    texts = [
        PLAIN.replace(
            "parameter(0)", f"parameter(0), sharding={sharding}" if sharding else "parameter(0)"
        )
        for sharding in (one, two)
    ]
    found = diff(*texts)
    assert found.changes[0].about == "sharding"
    assert found.severity == severity


def test_a_diff_holds_the_facts_of_both_sides() -> None:
    """Under `a` and `b`."""
    facts = diff(PLAIN, PLAIN.replace("sine", "tanh")).facts
    assert facts["a"]["ops"]["sine"] == facts["b"]["ops"]["tanh"] == 1


def test_stablehlo_is_compared_and_quoted() -> None:
    """By the lines of its text."""
    line = '%r = "stablehlo.{}"(%x) : (tensor<4xf32>) -> tensor<4xf32>'
    one, two = (stablehlo(line.replace("{}", op)) for op in ("sine", "tanh"))
    (change,) = diff(one, two, "stablehlo").changes
    assert change.title == "sine -> tanh"
    assert change.before == (line.replace("{}", "sine"),)


@pytest.mark.parametrize(
    ("a", "kind", "message"),
    [
        (PLAIN, "llvm", "kind 'llvm', expected one of hlo, stablehlo, jaxpr"),
        (PLAIN, "stablehlo", "got a text that begins like hlo, expected stablehlo"),
        (PLAIN.replace("divide(", "divide["), "hlo", "hlo line"),
    ],
)
def test_a_diff_of_a_malformed_text_is_an_error(a: str, kind: str, message: str) -> None:
    """With the line, never skipped."""
    with pytest.raises(IrSyntaxError, match=message):
        diff(a, a, kind)


def test_a_change_is_described_on_a_line() -> None:
    """For lists."""
    plain = Change(kind="added", count=1, severity="semantic", title="sine added")
    assert plain.line == "semantic: sine added"
    often = Change(kind="added", count=4, severity="cosmetic", title="note", about="sharding")
    assert often.line == "cosmetic (sharding): note x4"
    assert min(Severity, key=list(Severity).index) == "semantic"


def test_many_equal_changes_are_one_entry() -> None:
    """Their results distinguish the instructions."""

    def squares(first: int) -> str:
        lines = [
            line
            for n in range(1500)
            for line in (
                f"%c{n} = f32[4] constant({{{first + n}, 1, 2, 3}})",
                f"%m{n} = f32[4] multiply(%x, %c{n})",
            )
        ]
        types = ", ".join(["f32[4]"] * 1500)
        results = ", ".join(f"%m{n}" for n in range(1500))
        return hlo(*lines, f"%r = ({types}) tuple({results})")

    (change,) = diff(squares(0), squares(10_000)).changes
    assert (change.title, change.count) == ("value of constant", 1500)
