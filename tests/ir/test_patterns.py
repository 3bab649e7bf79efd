"""Equal rewrites form a pattern."""

from __future__ import annotations

import pytest

from conformance.ir.change import ChangeKind, Severity
from conformance.ir.patterns import RewritePattern, find_patterns
from tests.ir.test_edits import found
from tests.ir.texts import ADD, LOOP, STEPS, hlo

NEGATE = "%r = f32[4] negate(%x)"
REDUCE = "f32[4] all-reduce(%x), replica_groups={{0,1}}, to_apply=%add"
F32 = "%a = f32[4] iota(), iota_dimension=0"


def seen(a: str, b: str) -> list[RewritePattern]:
    """Return the patterns between two texts."""
    return find_patterns(found(a, b))


@pytest.mark.parametrize(
    ("one", "two", "kind", "about", "title"),
    [
        ([NEGATE], [f"%c = {REDUCE}", NEGATE], "added", "collective", "all-reduce added"),
        ([f"%c = {REDUCE}", NEGATE], [NEGATE], "removed", "collective", "all-reduce removed"),
        (
            [f"%r = {REDUCE}"],
            [f"%r = {REDUCE.replace('{{0,1}}', '{{0},{1}}')}"],
            "changed",
            "collective",
            "replica_groups of all-reduce",
        ),
        ([NEGATE], ["%r = f32[4] sine(%x)"], "replaced", "", "negate -> sine"),
        (
            ["%r = f32[4] divide(%x, %y)"],
            ["%r = f32[4] divide(%y, %x)"],
            "rewired",
            "",
            "operands of divide",
        ),
        (["%r = f32[4] copy(%x)"], ["%r = f32[4] copy(%y)"], "results", "", "returned values"),
        (
            ["%r = s32[] constant(1)"],
            ["%r = s32[] constant(2)"],
            "changed",
            "constant",
            "value of constant",
        ),
        (
            ["%r = f32[4]{0} copy(%x)"],
            ["%r = f32[4]{0:S(5)} copy(%x)"],
            "added",
            "",
            "copy added",
        ),
        (
            [F32, "%r = f32[4] convert(%a)"],
            [F32, "%r = f64[4] convert(%a)"],
            "added",
            "dtype",
            "convert added",
        ),
        (
            ['%r = f32[4] custom-call(%x), custom_call_target="f"'],
            ['%r = f32[4] custom-call(%x), custom_call_target="g"'],
            "changed",
            "custom call",
            "custom_call_target of custom-call",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_pattern_has_kind_subject_and_title(
    one: list[str], two: list[str], kind: str, about: str, title: str
) -> None:
    """What kind of change, what it concerns, in a few words."""
    (pattern,) = seen(hlo(*one, before=ADD), hlo(*two, before=ADD))
    assert (pattern.kind, pattern.about, pattern.title) == (kind, about, title)
    assert pattern.severity == Severity.SEMANTIC


def test_equal_rewrites_are_one_pattern() -> None:
    """Of any sizes; the smallest is the example."""
    lines = [f"%a{n} = f32[{n}] iota(), iota_dimension=0" for n in range(2, 9)]
    lines += [f"%b{n} = f32[{n}] sine(%a{n})" for n in range(2, 9)]
    types, values = (", ".join(form.format(n) for n in range(2, 9)) for form in ("f32[{}]", "%b{}"))
    text = hlo(*lines, f"%r = ({types}) tuple({values})")
    (pattern,) = seen(text, text.replace("sine", "tanh"))
    assert (len(pattern.rewrites), pattern.title) == (7, "sine -> tanh")


def test_another_movement_of_elements_is_structural() -> None:
    """The values are equal."""
    one = hlo("%r = f32[2,4]{1,0} broadcast(%x), dimensions={1}")
    two = hlo(
        "%a = f32[1,4]{1,0} reshape(%x)", "%r = f32[2,4]{1,0} concatenate(%a, %a), dimensions={0}"
    )
    (pattern,) = seen(one, two)
    assert (pattern.kind, pattern.severity) == (ChangeKind.REPLACED, Severity.STRUCTURAL)


def test_work_moved_into_a_loop_is_reported_as_moved() -> None:
    """Not as removed and added."""
    outside = hlo(
        LOOP[0], "%n = f32[4] sine(%y)", LOOP[1].replace("%y", "%n"), *LOOP[2:], before=STEPS
    )
    inside = STEPS.replace("multiply(%x, %w)", "multiply(%x, %v)").replace(
        "%one =", "%v = f32[4] sine(%w)\n  %one ="
    )
    (pattern,) = seen(outside, hlo(*LOOP, before=inside))
    assert (pattern.kind, pattern.title) == (ChangeKind.MOVED, "sine moved")


def test_patterns_are_sorted_by_severity() -> None:
    """Then by frequency."""
    one = hlo(
        "%a = f32[2,4]{1,0} broadcast(%x), dimensions={1}",
        "%b = f32[4] sine(%y)",
        "%r = (f32[2,4], f32[4]) tuple(%a, %b)",
    )
    two = one.replace("sine", "tanh").replace(
        "%a = f32[2,4]{1,0} broadcast(%x), dimensions={1}",
        "%c = f32[1,4]{1,0} reshape(%x)\n  %a = f32[2,4]{1,0} concatenate(%c, %c), dimensions={0}",
    )
    assert [str(p.severity) for p in seen(one, two)] == ["semantic", "structural"]
