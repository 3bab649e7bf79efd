"""Names and attributes: one spelling, no compiler's choice, devices in one form."""

from __future__ import annotations

import pytest

from conformance.ir.graph import Opaque, Sharding
from conformance.ir.normal.attributes import (
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
def test_spelling_is_no_part_of_the_exact_form(attribute: str) -> None:
    """Nothing of it computes anything."""
    assert structure(hlo(f"%r = f32[4] add(%x, %y), {attribute}")) == structure(
        hlo("%r = f32[4] add(%x, %y)")
    )


def test_groups_are_in_order_their_members_as_they_are() -> None:
    """An all-gather lays its parts out in the order of the members."""
    one, two, three = (
        structure(hlo(f"{REDUCE}replica_groups={groups}, to_apply=%add", before=ADD))
        for groups in ("{{0,1},{2,3}}", "{{2,3},{0,1}}", "{{1,0},{2,3}}")
    )
    assert one == two
    assert one != three


def test_the_number_of_a_channel_is_nothing_that_there_is_one_is_something() -> None:
    """A channel makes a collective one of all partitions; for `canonical` it is the same."""
    one, two, none = (
        hlo(f"{REDUCE}{channel}replica_groups={{}}, to_apply=%add", before=ADD)
        for channel in ("channel_id=1, ", "channel_id=7, ", "")
    )
    assert structure(one) == structure(two) != structure(none)
    assert neutral(one) == neutral(none)


@pytest.mark.parametrize(
    "order", ["condition=%condition, body=%body", "body=%body, condition=%condition"]
)
def test_computations_are_in_the_order_of_their_roles(order: str) -> None:
    """However the text names them."""
    lines = [line.replace("condition=%condition, body=%body", order) for line in LOOP]
    assert structure(hlo(*lines, before=STEPS)) == structure(hlo(*LOOP, before=STEPS))


def test_the_trip_count_is_kept_and_is_the_compilers_to_know() -> None:
    """It is a fact of the structure."""
    config = ', backend_config={"known_trip_count":{"n":"5"}}'
    lines = [line + config if "while(" in line else line for line in LOOP]
    found = after(hlo(*lines, before=STEPS), drop_spelling)
    assert the(found, "while").attributes["trip_count"] == "5"
    assert neutral(hlo(*lines, before=STEPS)) == neutral(hlo(*LOOP, before=STEPS))


def test_a_custom_call_keeps_what_its_configuration_says() -> None:
    """But not how it is tuned."""
    call = '%r = f32[4] custom-call(%x), custom_call_target="f", backend_config='
    plain, tuned, other = (
        structure(hlo(call + config))
        for config in ('{"k":"1"}', '{"k":"1","selected_algorithm":"7"}', '{"k":"2"}')
    )
    assert plain == tuned
    assert plain != other


def test_headers_say_little() -> None:
    """Scheduling and layouts of the entry are spelling, donation means something."""
    schedule = "HloModule m, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0}}"
    donation = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }"
    plain = structure(hlo("%r = f32[4] add(%x, %y)"))
    assert structure(hlo("%r = f32[4] add(%x, %y)", head=schedule)) == plain
    assert structure(hlo("%r = f32[4] add(%x, %y)", head=donation)) != plain
    assert neutral(hlo("%r = f32[4] add(%x, %y)", head=donation)) != neutral(
        hlo("%r = f32[4] add(%x, %y)")
    )


def test_stablehlo_and_hlo_name_alike() -> None:
    """What has several names has the one that HLO uses."""
    call = '%r = "stablehlo.custom_call"(%x) <{call_target_name = "f"}> : '
    found = after(stablehlo(f"{call}(tensor<4xf32>) -> tensor<4xf32>"), drop_spelling)
    assert the(found, "stablehlo.custom_call").attributes["custom_call_target"] == "f"


def test_how_optimised_code_was_cut_is_a_note() -> None:
    """Each device runs the code of its own part by then."""
    text = hlo("%r = f32[4] add(%x, %y)").replace(
        "parameter(0)", "parameter(0), sharding={devices=[2]0,1}"
    )
    found = after(text, drop_spelling)
    assert "sharding" in found.entry.parameters[0].attributes
    drop_compiler_choices(found)
    assert "sharding" not in found.entry.parameters[0].attributes


def test_what_is_shared_is_rewritten_once() -> None:
    """Instructions of one attribute dictionary keep having one."""
    found = module(hlo("%a = f32[4] negate(%x)", "%b = f32[4] negate(%y)"))
    one, two = found.entry.instructions[-2:]
    one.attributes = two.attributes = {"channel_id": 3}
    drop_spelling(found)
    assert one.attributes is two.attributes


SHIFT = (
    '%r = "stablehlo.shift_right_logical"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'
)


def test_stablehlo_is_named_as_hlo_is() -> None:
    """Without its prefix, with dashes."""
    assert ops(after(stablehlo(SHIFT), rename_operations)) == ["shift-right-logical"]


def test_hlo_keeps_its_names() -> None:
    """They are the ones the others get."""
    assert ops(after(hlo("%r = f32[4] shift-left(%x, %y)"), rename_operations)) == ["shift-left"]


def calling(target: str, address: str, operand: str = "") -> str:
    """Return a module that calls a function at an address."""
    return hlo(
        f"%a = s64[] constant({operand or address})",
        f'%r = f32[4] custom-call(%a, %x), custom_call_target="{target}", '
        f'backend_config="{address}"',
    )


@pytest.mark.parametrize("target", ["xla_python_cpu_callback", "xla_python_gpu_callback"])
def test_a_callback_is_the_same_wherever_its_function_lies(target: str) -> None:
    """Both places of the address are, and nothing else of the call."""
    one = structure(calling(target, "93918520036768"))
    assert structure(calling(target, "94812065876640")) == one
    assert structure(calling(target, "93918520036768", "3")) != one


def test_numbers_of_other_calls_mean_something() -> None:
    """A configuration that is a number may be one."""
    assert structure(calling("my_kernel", "16")) != structure(calling("my_kernel", "32"))


def test_groups_are_sorted_and_other_text_is_kept() -> None:
    """What is not understood is not touched."""
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
def test_a_sharding_has_one_form(sharding: Sharding, expected: Sharding) -> None:
    """Those that put the same tile on every device are one; a tuple is a tuple of those."""
    assert canonicalise_sharding(sharding) == expected
    assert canonicalise_sharding(expected) == expected
    pair = Sharding("tuple", parts=(sharding, sharding))
    assert canonicalise_sharding(pair) == Sharding("tuple", parts=(expected, expected))
