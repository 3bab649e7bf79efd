"""What a change is to those who upgrade, and what of it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.runs.transitions import make_transition
from conformance.model.outcome import Conformance
from conformance.model.run import RunCase
from conformance.model.value import Leaf
from conformance.triage.upgrade.effect import (
    Effect,
    ShownChange,
    classify_change,
    contrast,
    show_change,
)
from tests.builders import f32, value
from tests.report.runs import ADD, CELLS, Directory, sides

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.runs.transitions import Transition

OK: dict[str, Any] = {"value": f32(1, 2)}
OTHER: dict[str, Any] = {"value": f32(1, 3)}
RAISED: dict[str, Any] = {"error": ("ValueError", "bad shape")}
CONFORMS = {"conformance": Conformance.CONFORMS}
DEVIATES = {"conformance": Conformance.DEVIATES}
UNKNOWN = {"conformance": Conformance.UNKNOWN}
REDUCED = ADD.replace(
    "add(%x, %x)", "all-reduce(%x), replica_groups={{0,1}}, to_apply=%sum"
).replace(
    "ENTRY",
    "%sum (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n"
    "  %b = f32[] parameter(1)\n  ROOT %c = f32[] add(%a, %b)\n}\n\nENTRY",
)
OTHER_VALUE = ShownChange("value", "out[1] = 2.0", "out[1] = 3.0")


def between(
    folder: Path, before: dict[str, Any], after: dict[str, Any], case: RunCase | None = None
) -> Transition:
    """Return the transition from one job to another."""
    made = Directory(folder).job("f/a", CELLS[0], **before).job("f/a", CELLS[1], **after)
    one, other = sides(made)
    return make_transition(one, other, case or RunCase())


def in_a_way(said: str, ended: str = "raised", declared: str = "") -> dict[str, Any]:
    """Return a job that is right, and in another way is not."""
    ways = {"same_as": f'{{"eager":{{"outcome":"{ended}"}}}}'}
    return {**OK, **DEVIATES, "texts": ways, "reasons": (f"{declared}same_as eager: {said}",)}


RAISES = "raised TypeError: no batching"
DIFFERS = "out: 1 of 2 differ by 1.0"
DECLARED = "deviation jax>=0.6 (a/b#1): "
OTHERWISE = "not as the deviation jax>=0.6 (a/b#1) declares: "


@pytest.mark.parametrize(
    ("before", "after", "effect", "seen"),
    [
        (OK, in_a_way(RAISES), Effect.BROKEN, ("agrees", f"eager: {RAISES}")),
        (OK, in_a_way(RAISES, declared=DECLARED), Effect.BROKEN, ("agrees", f"eager: {RAISES}")),
        (OK, in_a_way(RAISES, declared=OTHERWISE), Effect.BROKEN, ("agrees", f"eager: {RAISES}")),
        (OK, in_a_way(DIFFERS), Effect.WRONG, ("agrees", f"eager: {DIFFERS}")),
        (in_a_way(RAISES), OK, Effect.FIXED, (f"eager: {RAISES}", "agrees")),
        ({**OK, **DEVIATES}, in_a_way(RAISES), Effect.ENDING, ("agrees", f"eager: {RAISES}")),
        (
            {**OK, **DEVIATES},
            {**in_a_way(RAISES), "reasons": ("out: 1 of 2 differ",)},
            Effect.ENDING,
            ("agrees", "eager: raised"),
        ),
    ],
)
def test_a_failing_or_differing_variant_has_an_effect(
    tmp_path: Path,
    before: dict[str, Any],
    after: dict[str, Any],
    effect: Effect,
    seen: tuple[str, str],
) -> None:
    """What breaks is the other way; a value that it gives there is silently wrong."""
    found = between(tmp_path, before, after, RunCase(same_as=("eager",)))
    assert (classify_change(found), show_change(found)) == (effect, ShownChange("same_as", *seen))


def test_a_value_that_leaves_the_tolerance_is_wrong(tmp_path: Path) -> None:
    """Although it changed by less than the tolerance."""
    after = {**OK, **DEVIATES, "reasons": ("out: 1 of 2 differ by 1e-5",)}
    found = between(tmp_path, OK, after)
    assert classify_change(found) is Effect.WRONG
    assert show_change(found) == ShownChange("ending", "ok", "ok, but out: 1 of 2 differ by 1e-5")


def with_figures(**figures: float) -> dict[str, Any]:
    """Return a job of which XLA's analyses say something."""
    return {**OK, "facts": figures}


@pytest.mark.parametrize(
    ("before", "after", "effect", "seen"),
    [
        (OK, OK, Effect.UNCHANGED, None),
        (OK, RAISED, Effect.BROKEN, ShownChange("ending", "ok", "ValueError: bad shape")),
        ({**OK, **UNKNOWN}, {**RAISED, **UNKNOWN}, Effect.BROKEN, None),
        (RAISED, OK, Effect.FIXED, ShownChange("ending", "ValueError: bad shape", "ok")),
        (OK, {**OTHER, **DEVIATES}, Effect.WRONG, OTHER_VALUE),
        (OK, OTHER, Effect.VALUE, OTHER_VALUE),
        (
            RAISED,
            {**OTHER, **DEVIATES, "reasons": ("deviation jax>=0.6 (a/b#1): out 1 of 2 differ",)},
            Effect.WRONG,
            ShownChange("ending", "ValueError: bad shape", "ok, but out 1 of 2 differ"),
        ),
        ({**OK, **DEVIATES}, RAISED, Effect.BROKEN, None),
        (RAISED, {"error": ("TypeError", "bad shape")}, Effect.ENDING, None),
        ({**RAISED, **CONFORMS}, OK, Effect.ENDING, None),
        ({**OTHER, **DEVIATES}, OK, Effect.FIXED, None),
        (OK, {"value": f32(1)}, Effect.VALUE,
         ShownChange("value", "out shape (2,)", "out shape (1,)")),
        (with_figures(flops=10_000.0), with_figures(flops=11_500.0), Effect.LARGER,
         ShownChange("flops", "10000", "11500")),
        (with_figures(flops=10_000.0), with_figures(flops=10_900.0), Effect.UNCHANGED, None),
        (with_figures(temp_bytes=8.0), with_figures(temp_bytes=64.0), Effect.UNCHANGED, None),
        (with_figures(bytes=9000.0), with_figures(bytes=900.0), Effect.UNCHANGED, None),
    ],
)  # fmt: skip
def test_each_change_has_an_effect(
    tmp_path: Path,
    before: dict[str, Any],
    after: dict[str, Any],
    effect: Effect,
    seen: ShownChange | None,
) -> None:
    """References decide what is broken, wrong or fixed; small figures are no news."""
    found = between(tmp_path, before, after)
    assert classify_change(found) is effect
    if seen is not None:
        assert show_change(found) == seen


def test_a_changed_fact_is_shown_on_both_sides(tmp_path: Path) -> None:
    """A collective that one side lacks."""
    found = between(tmp_path, {**OK, "texts": {"hlo": ADD}}, {**OK, "texts": {"hlo": REDUCED}})
    assert classify_change(found) is Effect.FACTS
    assert show_change(found) == ShownChange("collectives", "all-reduce 0", "all-reduce 1")


def test_returned_text_is_shown_like_numbers(tmp_path: Path) -> None:
    """They are shown as numbers are."""
    before, after = (
        {"value": value(Leaf(path="out", kind="python", dtype="str", data=repr(word).encode()))}
        for word in ("2023.12", "2024.12")
    )
    seen = show_change(between(tmp_path, before, after))
    assert seen == ShownChange("value", "out = '2023.12'", "out = '2024.12'")


def test_long_messages_are_shown_where_they_differ() -> None:
    """Not both as the same beginning."""
    before, after = (
        f"TypeError: {'the carry ' * 20}has type {t} and goes on" for t in ("f32", "i32")
    )
    assert contrast(before, after) == (
        "TypeError: ... carry the carry has type f32 and goes on",
        "TypeError: ... carry the carry has type i32 and goes on",
    )
    assert contrast("ok", "KeyError: 'x'") == ("ok", "KeyError: 'x'")
