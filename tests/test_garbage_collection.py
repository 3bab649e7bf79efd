"""Control of Python's garbage collector: always given back as it was found."""

from __future__ import annotations

import gc

from conformance.garbage_collection import exempt_from_garbage_collection, pause_garbage_collection


def test_a_pause_ends_with_the_outermost_block() -> None:
    """Blocks may be nested."""
    with pause_garbage_collection():
        with pause_garbage_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_objects_are_exempt_within_the_block_alone() -> None:
    """Objects that are made in it are collected, less often than elsewhere."""
    before = gc.get_threshold()
    with exempt_from_garbage_collection():
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold() > before
        cycle: list[object] = []
        cycle.append(cycle)
        del cycle
        assert gc.collect() > 0
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == before
