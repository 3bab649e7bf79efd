"""Memory spaces."""

from __future__ import annotations

import pytest

from conformance.ir.graph import Tensor
from conformance.ir.normal.spaces import (
    drop_scalar_memory,
    keep_host_spaces,
    note_spaces,
    space_name,
)
from tests.ir.texts import after, hlo, the


@pytest.mark.parametrize(
    ("space", "name"),
    [
        ("5", "pinned_host"),
        ("6", "unpinned_host"),
        ("1", ""),
        ("", ""),
        ("pinned_host", "pinned_host"),
        ("vmem", ""),
    ],
)
def test_only_the_hosts_spaces_have_a_name(space: str, name: str) -> None:
    """A name stays a name."""
    assert space_name(space) == name


def test_spaces_are_named_within_tuples() -> None:
    """Those of a device are its compiler's choice."""
    text = hlo('%r = (f32[4]{0:S(5)}, f32[4]{0:S(1)}) custom-call(%x), custom_call_target="f"')
    types = the(after(text, keep_host_spaces, keep_host_spaces), "custom-call").type
    assert types == (Tensor("f32", (4,), "0", "pinned_host"), Tensor("f32", (4,), "0"))


def test_scalar_memory_of_a_tpu_is_not_the_hosts() -> None:
    """A TPU's layouts are tiled; its scalar memory has the number of the host's unpinned one."""
    head = "HloModule m, entry_computation_layout={(f32[]{:T(128)S(6)}, f32[]{:T(128)S(5)})->f32[]}"
    text = hlo("%r = f32[]{:T(128)S(6)} copy(%x)", "%s = f32[4]{0:S(6)} copy(%y)", head=head)
    made = after(text, drop_scalar_memory, note_spaces)
    copies = [one.type for one in made.walk() if one.op == "copy"]
    spaces = [type_.space for type_ in copies if isinstance(type_, Tensor)]
    noted = [one.attributes.get("memory_space") for one in made.entry.parameters]
    assert (spaces, noted) == (["", "6"], [None, "5"])
