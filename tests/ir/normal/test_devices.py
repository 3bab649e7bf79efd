"""Replica groups and shardings in one form."""

from __future__ import annotations

import pytest

from conformance.ir.graph import Opaque, Sharding
from conformance.ir.normal.devices import canonical_sharding, sorted_groups


def test_groups_are_sorted_and_other_text_is_kept() -> None:
    """What is not understood is not touched."""
    assert sorted_groups(((2, 3), (1, 0))) == ((1, 0), (2, 3))
    assert sorted_groups(Opaque("?")) == Opaque("?")


@pytest.mark.parametrize(
    ("said", "meant"),
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
def test_a_sharding_has_one_form(said: Sharding, meant: Sharding) -> None:
    """Those that put the same tile on every device are one; a tuple is a tuple of those."""
    assert canonical_sharding(said) == meant
    assert canonical_sharding(meant) == meant
    pair = Sharding("tuple", parts=(said, said))
    assert canonical_sharding(pair) == Sharding("tuple", parts=(meant, meant))
