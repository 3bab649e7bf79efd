"""Regions that read what is around them."""

from __future__ import annotations

from conformance.ir.normal.attributes import spell_alike
from conformance.ir.normal.regions import close_regions
from tests.ir.texts import after, neutral, reads, stablehlo, the

F32 = "(tensor<4xf32>) -> tensor<4xf32>"
TWO = "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"
ZERO = '%zero = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>'


def case(*branches: str) -> list[str]:
    """Return a choice between regions, each of one line that makes `%r`."""
    regions = "}, {".join(
        f'\n{line}\n"stablehlo.return"(%b) : (tensor<4xf32>) -> ()\n' for line in branches
    )
    return [
        ZERO,
        *f'%r = "stablehlo.case"(%zero) ({{{regions}}}) : (tensor<i32>) -> tensor<4xf32>'.split(
            "\n"
        ),
    ]


NEGATE = f'%b = "stablehlo.negate"(%x) : {F32}'
SUBTRACT = f'%b = "stablehlo.subtract"(%x, %y) : {TWO}'


def test_what_is_read_from_around_is_an_operand() -> None:
    """The same for all regions, each once."""
    found = the(after(stablehlo(*case(SUBTRACT, NEGATE)), spell_alike, close_regions), "case")
    assert reads(found)[1:] == ["x", "y"]
    assert found.attributes["captured"] == 2
    assert [len(inner.parameters) for _, inner in found.bodies] == [2, 2]


def test_constants_are_made_again_inside() -> None:
    """A constant is no dependency."""
    constant = (
        '%c = "stablehlo.constant"() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<4xf32>'
    )
    add = f'%b = "stablehlo.add"(%x, %c) : {TWO}'
    outside = stablehlo(constant, *case(add, NEGATE))
    inside = stablehlo(*case(f"{constant}\n{add}", NEGATE))
    assert the(after(outside, spell_alike, close_regions), "case").attributes["captured"] == 1
    assert neutral(outside) == neutral(inside)


def test_a_region_within_a_region_passes_on_what_it_reads() -> None:
    """The outer one takes it for the inner one."""
    inner = "\n".join(case(SUBTRACT, NEGATE)[1:])
    inner = inner.replace("%b", "%c").replace("%r =", "%b =")
    found = after(stablehlo(*case(inner, NEGATE)), spell_alike, close_regions)
    outer = found.entry.instructions[-1]
    assert outer.attributes["captured"] == 2
    nested = outer.bodies[0][1].instructions[-1]
    assert all(one in outer.bodies[0][1].instructions for one in nested.operands)


def test_three_branches_may_read_different_things() -> None:
    """All of them take all of it."""
    other = NEGATE.replace("%x", "%y")
    found = after(stablehlo(*case(NEGATE, other, SUBTRACT)), close_regions)
    assert [len(inner.parameters) for _, inner in the(found, "stablehlo.case").bodies] == [2, 2, 2]


def test_the_order_in_which_branches_read_is_nothing() -> None:
    """What is captured is in an order of its own."""
    mirrored = SUBTRACT.replace("%x, %y", "%y, %x")
    one = stablehlo(*case(SUBTRACT, NEGATE))
    assert neutral(one) == neutral(
        stablehlo(*case(SUBTRACT, NEGATE), f'%d = "stablehlo.negate"(%y) : {F32}')
    )
    assert neutral(one) != neutral(stablehlo(*case(mirrored, NEGATE)))


def test_a_loop_may_read_what_is_around_it() -> None:
    """It captures it as it captures what it carries unchanged."""

    def loop(read: str, given: str, more: str = "") -> list[str]:
        types = "tensor<i32>, tensor<4xf32>" + (", tensor<4xf32>" if more else "")
        head = "^bb0(%i: tensor<i32>, %a: tensor<4xf32>" + (
            ", %w: tensor<4xf32>):" if more else "):"
        )
        count = 3 if more else 2
        return [
            ZERO,
            f'%l:{count} = "stablehlo.while"({given}) ({{',
            head.replace("%i", "%ci").replace("%a", "%ca").replace("%w", "%cw"),
            '%most = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>',
            '%less = "stablehlo.compare"(%ci, %most)',
            "<{comparison_direction = #stablehlo<comparison_direction LT>}>",
            ": (tensor<i32>, tensor<i32>) -> tensor<i1>",
            '"stablehlo.return"(%less) : (tensor<i1>) -> ()',
            "}, {",
            head,
            '%one = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>',
            '%j = "stablehlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>',
            f'%n = "stablehlo.multiply"(%a, {read}) : {TWO}',
            f'"stablehlo.return"(%j, %n{more}) : ({types}) -> ()',
            f"}}) : ({types}) -> ({types})",
        ]

    captured = stablehlo(*loop("%y", "%zero, %x"), results=("%l#1",))
    carried = stablehlo(*loop("%w", "%zero, %x, %y", ", %w"), results=("%l#1",))
    assert neutral(captured) == neutral(carried)
