"""Facts of a module in compiler-neutral terms."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.ir.analysis import analyse
from conformance.ir.fact_table import render_sharding
from conformance.ir.graph import Sharding
from conformance.judge.ir import GATING, select_gating
from tests.ir.jaxpr.documents import document, eqn, jaxpr
from tests.ir.texts import ADD, LOOP, STEPS, hlo

HOST = """%r = f32[4] call(%x), to_apply=%h, frontend_attributes={_xla_compute_type="host"}"""
REDUCE = "all-reduce(%x), replica_groups={{1,0},{2,3}}, to_apply=%add"


def of(*lines: str, before: str = ADD, head: str = "HloModule m") -> dict[str, Any]:
    """Return the facts of HLO."""
    return dict(analyse(hlo(*lines, before=before, head=head), "hlo").facts)


def test_an_empty_module_has_all_facts() -> None:
    """As plain data."""
    found = of("%r = f32[4] negate(%x)")
    assert json.loads(json.dumps(found)) == found
    assert list(select_gating(found)) == list(GATING)
    assert found["collectives"] == {}
    assert found["parameters"] == [{"type": "f32[4]"}, {"type": "f32[4]"}]
    assert found["results"] == [{"type": "f32[4]"}]
    assert found["dtypes"] == ["f32"]


def test_a_collective_is_described() -> None:
    """Operation, reducer, type, groups."""
    found = of(f"%r = f32[4] {REDUCE}")
    assert found["collectives"] == {"all-reduce": 1}
    assert found["collective_ops"] == {"all-reduce add f32[4] over [[1,0],[2,3]]": 1}


def test_a_start_and_its_done_count_once() -> None:
    """With the type of the result."""
    found = of(
        "%s = (f32[4], f32[8]) all-gather-start(%x), replica_groups={{0,1}}, dimensions={0}",
        "%d = f32[8] all-gather-done(%s)",
    )
    assert found["collective_ops"] == {"all-gather f32[8] dim [0] over [[0,1]]": 1}


def test_a_collective_in_a_loop_is_marked() -> None:
    """It runs more than once."""
    steps = STEPS.replace("multiply(%x, %w)", REDUCE)
    found = of(*LOOP, before=f"{ADD}\n\n{steps}")
    assert list(found["collective_ops"]) == ["all-reduce add f32[4] over [[1,0],[2,3]] in a loop"]
    assert found["loops"] == {"trip count unknown": 1}


@pytest.mark.parametrize(
    ("line", "name", "expected"),
    [
        ("%r = s32[4] convert(%x)", "converts", {"f32->s32": 1}),
        ('%r = f32[4] custom-call(%x), custom_call_target="f"', "custom_calls", {"f": 1}),
        ("%r = f32[4]{0:S(5)} copy(%x)", "memory_spaces", {"pinned_host": 1}),
        (
            "%r = f32[] dot(%x, %y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            "contractions",
            {"dot f32[]": 1},
        ),
        (
            HOST,
            "host_compute",
            True,
        ),
        ("%r = f32[4] negate(%x)", "ops", {"negate": 1, "parameter": 2}),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_other_facts_are_counted(line: str, name: str, expected: object) -> None:
    """A line for each."""
    callee = "%h {\n  ROOT %p = f32[4] parameter(0)\n}"
    found = of(line, before=callee if line == HOST else ADD)
    assert found[name] == expected


def test_fusions_are_counted_by_kind() -> None:
    """In the exact form, because the canonical form inlines them."""
    fused = "%f {\n  %p = f32[4] parameter(0)\n  ROOT %n = f32[4] negate(%p)\n}"
    found = of("%r = f32[4] fusion(%x), kind=kLoop, calls=%f", before=fused)
    assert found["fusions"] == {"kLoop": 1}


def test_donation_is_described_by_parameter() -> None:
    """With the output that may overwrite it."""
    alias = "HloModule m, input_output_alias={ {}: (1, {}, must-alias) }"
    assert of("%r = f32[4] negate(%x)", head=alias)["donation"] == [
        "parameter 1 -> output [] must-alias"
    ]


def test_parameters_have_memory_space_and_sharding() -> None:
    """As far as the text states them."""
    text = hlo("%r = f32[4] negate(%x)").replace(
        "%y = f32[4]{0} parameter(1)", "%y = f32[4]{0:S(5)} parameter(1), sharding={devices=[2]0,1}"
    )
    assert analyse(text, "hlo").facts["parameters"][1] == {
        "type": "f32[4]",
        "memory": "pinned_host",
        "sharding": "tiled [2] over 0,1",
    }


def test_collectives_of_a_jaxpr_have_the_names_of_hlo() -> None:
    """And the reducer that their primitive implies."""
    text = document(jaxpr(eqn("psum", [0], axes=["i"]), out=(1,)))
    found = analyse(text, "jaxpr").facts
    assert found["collectives"] == {"all-reduce": 1}
    assert next(iter(found["collective_ops"])).startswith("all-reduce add f32[4]")


@pytest.mark.parametrize(
    ("sharding", "text"),
    [
        (Sharding("replicated"), "replicated"),
        (Sharding("maximal", devices=(3,)), "maximal 3"),
        (
            Sharding("tiled", (2, 2), (0, 1, 2, 3), ("replicated",)),
            "tiled [2,2] replicated last over 0,1,2,3",
        ),
        (
            Sharding("tiled", (32,), tuple(range(32))),
            "tiled [32] over 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,... 32 devices",
        ),
        (Sharding("tuple", parts=(Sharding("manual"),)), "(manual)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_shardings_are_rendered_shortly(sharding: Sharding, text: str) -> None:
    """A few devices are listed, many are counted."""
    assert render_sharding(sharding) == text


FUSED = """%fused {{
  %p = f32[8,4] parameter(0)
  %all = f32[8,4] all-reduce(%p), replica_groups={{{{0,1}}}}, to_apply=%add
  %zero = s32[] constant(0)
  %which = u32[] partition-id()
  ROOT %r = {type} {root}
}}"""
SLICE = "dynamic-slice(%all, %which, %zero), dynamic_slice_sizes={1,4}"


def collectives(type_: str, root: str, kind: str = "kCustom") -> dict[str, int]:
    """Return the collectives of a fusion that reduces and returns something of the sum."""
    text = hlo(
        "%wide = f32[8,4] broadcast(%x), dimensions={1}",
        f"%r = {type_} fusion(%wide), kind={kind}, calls=%fused",
        before=f"{ADD}\n\n{FUSED.format(type=type_, root=root)}",
    )
    found: dict[str, int] = analyse(text, "hlo").facts["collective_ops"]
    return found


def test_a_sliced_all_reduce_counts_as_a_reduce_scatter() -> None:
    """Of the type of the slice, along its dimension."""
    found = collectives("f32[1,4]", SLICE)
    assert found == {"reduce-scatter add f32[1,4] dim [0] over [[0,1]]": 1}


@pytest.mark.parametrize(
    ("type_", "root", "kind"),
    [("f32[1,4]", SLICE, "kLoop"), ("f32[8,4]", "copy(%all)", "kCustom")],
)
def test_other_fusions_keep_their_all_reduce(type_: str, root: str, kind: str) -> None:
    """If they are no custom fusion, or return everything."""
    found = collectives(type_, root, kind)
    assert found == {"all-reduce add f32[8,4] over [[0,1]]": 1}
