"""Passes over names, attributes, shardings and device groups."""

from __future__ import annotations

import pytest

from conformance.ir.graph import Opaque, Sharding
from conformance.ir.normal.attributes import (
    CALLBACKS,
    canonicalise_sharding,
    drop_compiler_choices,
    drop_spelling,
    rename_operations,
    sort_groups,
)
from tests.ir.texts import (
    ADD,
    LOOP,
    STEPS,
    after,
    hlo,
    module,
    neutral,
    ops,
    stablehlo,
    structure,
    the,
)

REDUCE = "%r = f32[4] all-reduce(%x), "


@pytest.mark.parametrize(
    "attribute",
    [
        'metadata={op_name="jit(f)/add" source_file="f.py" source_line=3}',
        "operand_layout_constraints={f32[4]{0}}",
        'frontend_attributes={_xla_op_name="f",mhlo.x="1"}',
        "control-predecessors={%x}",
        'backend_config={"outer_dimension_partitions":["4"]}',
    ],
)
def test_spelling_is_dropped_from_the_exact_form(attribute: str) -> None:
    """None of it computes anything."""
    assert structure(hlo(f"%r = f32[4] add(%x, %y), {attribute}")) == structure(
        hlo("%r = f32[4] add(%x, %y)")
    )


def test_groups_are_sorted_but_not_their_members() -> None:
    """An all-gather concatenates in the order of the members."""
    one, two, three = (
        structure(hlo(f"{REDUCE}replica_groups={groups}, to_apply=%add", before=ADD))
        for groups in ("{{0,1},{2,3}}", "{{2,3},{0,1}}", "{{1,0},{2,3}}")
    )
    assert one == two
    assert one != three


def test_only_the_existence_of_a_channel_counts() -> None:
    """A channel makes a collective span partitions; the canonical form drops it."""
    one, two, none = (
        hlo(f"{REDUCE}{channel}replica_groups={{}}, to_apply=%add", before=ADD)
        for channel in ("channel_id=1, ", "channel_id=7, ", "")
    )
    assert structure(one) == structure(two) != structure(none)
    assert neutral(one) == neutral(none)


@pytest.mark.parametrize(
    "order", ["condition=%condition, body=%body", "body=%body, condition=%condition"]
)
def test_bodies_are_sorted_by_role(order: str) -> None:
    """Independent of the text."""
    lines = [line.replace("condition=%condition, body=%body", order) for line in LOOP]
    assert structure(hlo(*lines, before=STEPS)) == structure(hlo(*LOOP, before=STEPS))


def test_the_trip_count_is_kept_only_in_the_exact_form() -> None:
    """It is a fact, and only some compilers find it."""
    config = ', backend_config={"known_trip_count":{"n":"5"}}'
    lines = [line + config if "while(" in line else line for line in LOOP]
    found = after(hlo(*lines, before=STEPS), drop_spelling)
    assert the(found, "while").attributes["trip_count"] == "5"
    assert neutral(hlo(*lines, before=STEPS)) == neutral(hlo(*LOOP, before=STEPS))


def test_a_custom_call_keeps_its_configuration_without_tuning() -> None:
    """Other keys may change values."""
    call = '%r = f32[4] custom-call(%x), custom_call_target="f", backend_config='
    plain, tuned, other = (
        structure(hlo(call + config))
        for config in ('{"k":"1"}', '{"k":"1","selected_algorithm":"7"}', '{"k":"2"}')
    )
    assert plain == tuned
    assert plain != other


def test_only_donation_in_the_header_counts() -> None:
    """Scheduling and layouts of the entry are spelling."""
    schedule = "HloModule m, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0}}"
    donation = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }"
    plain = structure(hlo("%r = f32[4] add(%x, %y)"))
    assert structure(hlo("%r = f32[4] add(%x, %y)", head=schedule)) == plain
    assert structure(hlo("%r = f32[4] add(%x, %y)", head=donation)) != plain
    assert neutral(hlo("%r = f32[4] add(%x, %y)", head=donation)) != neutral(
        hlo("%r = f32[4] add(%x, %y)")
    )


def test_attributes_of_stablehlo_get_the_names_of_hlo() -> None:
    """If HLO names the attribute differently."""
    call = '%r = "stablehlo.custom_call"(%x) <{call_target_name = "f"}> : '
    found = after(stablehlo(f"{call}(tensor<4xf32>) -> tensor<4xf32>"), drop_spelling)
    assert the(found, "stablehlo.custom_call").attributes["custom_call_target"] == "f"


def test_shardings_of_optimised_parameters_are_dropped_as_choices() -> None:
    """Each device runs the code of its part already."""
    text = hlo("%r = f32[4] add(%x, %y)").replace(
        "parameter(0)", "parameter(0), sharding={devices=[2]0,1}"
    )
    found = after(text, drop_spelling)
    assert "sharding" in found.entry.parameters[0].attributes
    drop_compiler_choices(found)
    assert "sharding" not in found.entry.parameters[0].attributes


def test_shared_attributes_stay_shared() -> None:
    """Instructions with one attribute dictionary keep a common one."""
    found = module(hlo("%a = f32[4] negate(%x)", "%b = f32[4] negate(%y)"))
    one, two = found.entry.instructions[-2:]
    one.attributes = two.attributes = {"channel_id": 3}
    drop_spelling(found)
    assert one.attributes is two.attributes


SHIFT = (
    '%r = "stablehlo.shift_right_logical"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'
)


def test_operations_of_stablehlo_get_the_names_of_hlo() -> None:
    """Without a prefix, with dashes."""
    assert ops(after(stablehlo(SHIFT), rename_operations)) == ["shift-right-logical"]


def test_operations_of_hlo_keep_their_names() -> None:
    """The other IRs get these names."""
    assert ops(after(hlo("%r = f32[4] shift-left(%x, %y)"), rename_operations)) == ["shift-left"]


def calling(target: str, address: str, operand: str = "") -> str:
    """Return a module that calls a function at an address."""
    return hlo(
        f"%a = s64[] constant({operand or address})",
        f'%r = f32[4] custom-call(%a, %x), custom_call_target="{target}", '
        f'backend_config="{address}"',
    )


@pytest.mark.parametrize("target", sorted(CALLBACKS))
def test_the_address_of_a_callback_is_dropped(target: str) -> None:
    """In both places, but nothing else of the call."""
    one = structure(calling(target, "93918520036768"))
    assert structure(calling(target, "94812065876640")) == one
    assert structure(calling(target, "93918520036768", "3")) != one


def test_numbers_of_other_custom_calls_are_kept() -> None:
    """The configuration may be a number."""
    assert structure(calling("my_kernel", "16")) != structure(calling("my_kernel", "32"))


def test_groups_are_sorted_and_unknown_text_is_kept() -> None:
    """Its meaning is unknown."""
    assert sort_groups(((2, 3), (1, 0))) == ((1, 0), (2, 3))
    assert sort_groups(Opaque("?")) == Opaque("?")


@pytest.mark.parametrize(
    ("sharding", "expected"),
    [
        (Sharding("tiled", (2, 2), (0, 1, 2, 3)), Sharding("tiled", (2, 2), (0, 1, 2, 3))),
        (Sharding("tiled", (1, 2), (0, 1), ("replicated",)), Sharding("replicated")),
        (Sharding("tiled", (1, 2), (0, 1), ("manual",)), Sharding("manual")),
        (Sharding("tiled", (1,), (0,)), Sharding("replicated")),
        (
            Sharding("tiled", (2, 2), (1, 0, 3, 2), ("replicated",)),
            Sharding("tiled", (2, 2), (0, 1, 2, 3), ("replicated",)),
        ),
        (
            Sharding("tiled", (2, 1, 2), (0, 1, 2, 3), ("manual", "replicated")),
            Sharding("tiled", (2, 2), (0, 1, 2, 3), ("replicated",)),
        ),
        (
            Sharding("tiled", (2, 2, 2), tuple(range(8)), ("replicated", "replicated")),
            Sharding("tiled", (2, 4), tuple(range(8)), ("replicated",)),
        ),
        (Sharding("maximal", devices=(3,)), Sharding("maximal", devices=(3,))),
    ],
)
def test_equal_placements_have_one_sharding(sharding: Sharding, expected: Sharding) -> None:
    """A tuple is a tuple of such shardings."""
    assert canonicalise_sharding(sharding) == expected
    assert canonicalise_sharding(expected) == expected
    pair = Sharding("tuple", parts=(sharding, sharding))
    assert canonicalise_sharding(pair) == Sharding("tuple", parts=(expected, expected))
