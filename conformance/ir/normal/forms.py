"""The normal forms themselves: lists of passes, and what they make of a module.

Records and goldens call the fingerprint of `exact` structure and that of `canonical` neutral.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.garbage_collection import pause_garbage_collection
from conformance.ir.fingerprint import fingerprint, hash_module
from conformance.ir.graph import IrSyntaxError
from conformance.ir.kernels import read_kernels
from conformance.ir.normal.attributes import (
    drop_addresses,
    drop_compilers_choice,
    drop_spelling,
    spell_alike,
)
from conformance.ir.normal.color_refinement import has_equal_loops, order_slots
from conformance.ir.normal.inlining import fold_async, inline_calls
from conformance.ir.normal.layouts import (
    drop_layouts,
    drop_scalar_memory,
    keep_host_spaces,
    note_spaces,
    resolve_bitcasts,
)
from conformance.ir.normal.loop_carries import close_regions, move_loop_invariants, normalise_slots
from conformance.ir.normal.partitioning import unify_partitioning
from conformance.ir.normal.simplification import (
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_copies,
    fold_identities,
    fold_reshapes,
    order_comparisons,
)
from conformance.ir.normal.tuples import fold_tuples

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.ir.fingerprint import Fingerprints
    from conformance.ir.graph import Module

    Pass = Callable[[Module], object]

VERSION: Final = 1
"""Version of the normal forms: a golden of another one is tainted, not different."""

EXACT: Final[tuple[Pass, ...]] = (
    spell_alike,
    close_regions,
    # These read layouts. Scalar memory goes first: its number is that of a memory of the host.
    resolve_bitcasts,
    drop_scalar_memory,
    note_spaces,
    drop_layouts,
    # From here on attributes have one name each.
    drop_spelling,
    drop_addresses,
    read_kernels,
)
"""Take away what is only spelling."""

CANONICAL: Final[tuple[Pass, ...]] = (
    drop_compilers_choice,
    keep_host_spaces,
    # An asynchronous pair becomes a call, which is inlined.
    fold_async,
    inline_calls,
    unify_partitioning,
    # Slots are tensors: tuples must be gone.
    fold_tuples,
    normalise_slots,
    fold_copies,
    order_comparisons,
)
"""Take away, after `EXACT`, what a compiler is free to choose; then comes `run_to_fixed_point`."""
SETTLING: Final[tuple[Pass, ...]] = (
    fold_identities,
    fold_reshapes,
    eliminate_dead_code,
    eliminate_common_subexpressions,
)
"""What one of them leaves may be something for another."""


def to_exact(module: Module) -> str:
    """Bring a module into the form `exact`.

    Args:
        module: As parsed; rewritten in place.

    Returns:
        Its fingerprint, 24 hexadecimal digits.

    Raises:
        IrSyntaxError: If it is nested too deeply, or calls itself.
    """
    return fingerprint(module, make_exact(module))


def make_exact(module: Module) -> Fingerprints:
    """Bring a module into the form `exact`, and return the hashes of all it uses."""
    return _run(EXACT, module, hash_module)


def to_canonical(module: Module) -> str:
    """Bring a module from the form `exact` into the form `canonical`.

    Args:
        module: In the form `exact`; rewritten in place.

    Returns:
        Its fingerprint, 24 hexadecimal digits.

    Raises:
        IrSyntaxError: If it is nested too deeply, or calls itself.
    """
    return fingerprint(module, _run(CANONICAL, module, run_to_fixed_point))


def run_to_fixed_point(module: Module) -> Fingerprints:
    """Take away what loops and branches need not carry and what is done in vain; sort the rest.

    Args:
        module: Rewritten in place until there is nothing left to do.

    Returns:
        Its hashes.
    """
    move_loop_invariants(module)
    while True:
        for step in SETTLING:
            step(module)
        if move_loop_invariants(module):
            continue
        hashes = order_slots(module)
        if not has_equal_loops(module, hashes):
            return hashes


def _run(
    passes: tuple[Pass, ...], module: Module, last: Callable[[Module], Fingerprints]
) -> Fingerprints:
    # Graphs are full of cycles and live long: the collector would walk them in vain.
    with pause_garbage_collection():
        try:
            for step in passes:
                step(module)
            return last(module)
        except RecursionError:
            raise IrSyntaxError("loops nested too deeply to be put in order") from None
