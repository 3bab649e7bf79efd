"""The first operations that differ: equal for equal changes, in any program."""

from __future__ import annotations

import pytest

from conformance.ir.difference import diff

HEAD = "HloModule m\n\nENTRY %main (p: f32[{n}]) -> f32[{n}] {{\n  %p = f32[{n}] parameter(0)\n"


def program(*lines: str, n: int = 4) -> str:
    """Return a module of some instructions, `N` in them for its size."""
    body = "\n".join(f"  {line}" for line in lines).replace("N", str(n))
    return f"{HEAD.format(n=n)}{body}\n}}\n"


def scaled(by: str, *more: str, n: int = 4) -> str:
    """Return a program that multiplies by a number that it has, then does more."""
    return program(
        f"%c = f32[] constant({by})", "%s = f32[N] broadcast(%c), dimensions={}",
        "%m = f32[N] multiply(%p, %s)", *more, n=n,
    )  # fmt: skip


ROOT = "ROOT %r = f32[N] tanh(%m)"
SAME = ("%e = f32[] constant(1)", "%b = f32[N] broadcast(%e), dimensions={}")
ADDED = (*SAME, "ROOT %r = f32[N] add(%m, %b)")


def test_equal_modules_have_no_divergence() -> None:
    """Other names are no difference."""
    text = scaled("2", ROOT)
    assert diff(text, text.replace("%m", "%other")).begins == ()


@pytest.mark.parametrize("rest", [(ROOT,), ADDED], ids=["alone", "the constant is there already"])
@pytest.mark.parametrize("n", [4, 16])
def test_a_changed_constant_is_described_by_its_readers(rest: tuple[str, ...], n: int) -> None:
    """Independent of shared constants, sizes and later instructions."""
    found = diff(scaled("2", *rest, n=n), scaled("1", *rest, n=n))
    assert found.begins == ("multiply reads otherwise",)


def test_swapped_operands_are_described_by_their_operation() -> None:
    """Readers of the result are not listed."""
    before = scaled("2", "%d = f32[N] subtract(%m, %p)", "ROOT %r = f32[N] tanh(%d)")
    after = before.replace("subtract(%m, %p)", "subtract(%p, %m)")
    assert diff(before, after).begins == ("subtract reads otherwise",)


def test_a_new_operation_is_described_without_its_readers() -> None:
    """Its operand is unchanged."""
    before = scaled("2", ROOT)
    after = scaled("2", "%g = f32[N] cosine(%m)", ROOT.replace("%m", "%g"))
    assert diff(before, after).begins == ("cosine new",)


def test_a_conversion_is_described_with_its_types() -> None:
    """The operation alone would not distinguish conversions."""
    before = scaled("2", ROOT)
    after = scaled(
        "2", "%h = bf16[N] convert(%m)", "%t = bf16[N] tanh(%h)", "ROOT %r = f32[N] convert(%t)"
    )
    assert "convert f32 to bf16 new" in diff(before, after).begins


def test_independent_changes_diverge_in_two_places() -> None:
    """Neither follows from the other."""
    before = program(
        "%a = f32[N] sine(%p)", "%b = f32[N] cosine(%p)", "ROOT %r = f32[N] add(%a, %b)"
    )
    after = before.replace("sine(%p)\n", "exponential(%p)\n", 1).replace("cosine", "log")
    begins = diff(before, after).begins
    assert {"exponential new", "log new"} <= set(begins)
    assert not any("add" in one for one in begins)
