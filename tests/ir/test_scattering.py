"""A reduce-scatter as a TPU has it."""

from __future__ import annotations

import pytest

from conformance.ir import facts
from tests.ir.texts import ADD, hlo

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
    found: dict[str, int] = facts(text)["collective_ops"]
    return found


def test_an_all_reduce_of_which_a_part_is_kept_is_a_reduce_scatter() -> None:
    """Of the type of the part, along the dimension that it is a part of."""
    found = collectives("f32[1,4]", SLICE)
    assert found == {"reduce-scatter add f32[1,4] dim [0] over [[0,1]]": 1}


@pytest.mark.parametrize(
    ("type_", "root", "kind"),
    [("f32[1,4]", SLICE, "kLoop"), ("f32[8,4]", "copy(%all)", "kCustom")],
)
def test_others_are_what_they_are_called(type_: str, root: str, kind: str) -> None:
    """Another fusion only happens to slice; one that does not slice gives all to all."""
    found = collectives(type_, root, kind)
    assert found == {"all-reduce add f32[8,4] over [[0,1]]": 1}
