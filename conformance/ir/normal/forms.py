"""The exact and the canonical form: lists of passes, and the fingerprints of their results.

Records and goldens hold the exact fingerprint as `structure` and the canonical one as `neutral`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.garbage_collection import pause_garbage_collection
from conformance.ir.fingerprint import fingerprint, hash_module
from conformance.ir.graph import IrSyntaxError
from conformance.ir.kernels import read_kernels
from conformance.ir.normal.attributes import (
    drop_addresses,
    drop_compiler_choices,
    drop_spelling,
    rename_operations,
)
from conformance.ir.normal.color_refinement import has_equal_loops, order_slots
from conformance.ir.normal.inlining import fold_async, inline_calls
from conformance.ir.normal.layouts import (
    copy_header_spaces,
    drop_layouts,
    drop_scalar_memory,
    keep_host_spaces,
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

EXACT: Final[tuple[Pass, ...]] = (
    # Later passes know operations by the names of HLO.
    rename_operations,
    close_regions,
    # These read layouts. Scalar memory is dropped before the memory spaces of the host are read,
    # because both have the number 6.
    resolve_bitcasts,
    drop_scalar_memory,
    copy_header_spaces,
    drop_layouts,
    # From here on attributes have one name each.
    drop_spelling,
    drop_addresses,
    read_kernels,
)
"""Passes that remove differences of spelling."""

CANONICAL: Final[tuple[Pass, ...]] = (
    drop_compiler_choices,
    keep_host_spaces,
    # An asynchronous pair becomes a call, so it is folded before calls are inlined.
    fold_async,
    inline_calls,
    # After inlining: a constraint and its reader may be on two sides of a call.
    unify_partitioning,
    # Slots are tensors: tuples must be gone.
    fold_tuples,
    normalise_slots,
    fold_copies,
    order_comparisons,
)
"""Passes that remove, after `EXACT`, the free choices of a compiler; simplification follows."""
SIMPLIFYING: Final[tuple[Pass, ...]] = (
    fold_identities,
    fold_reshapes,
    eliminate_dead_code,
    eliminate_common_subexpressions,
)
"""Passes that enable each other; `simplify` runs them until nothing changes."""


def to_exact(module: Module) -> str:
    """Bring a module into the exact form.

    Args:
        module: As parsed; rewritten in place.

    Returns:
        Its fingerprint, 24 hexadecimal digits.

    Raises:
        IrSyntaxError: If it is nested too deeply, or calls itself.
    """
    return fingerprint(module, make_exact(module))


def make_exact(module: Module) -> Fingerprints:
    """Bring a module into the exact form, and return the hashes of its computations."""
    return _run(EXACT, module, hash_module)


def to_canonical(module: Module) -> str:
    """Bring a module from the exact into the canonical form.

    Args:
        module: In the exact form; rewritten in place.

    Returns:
        Its fingerprint, 24 hexadecimal digits.

    Raises:
        IrSyntaxError: If it is nested too deeply, or calls itself.
    """
    return fingerprint(module, _run(CANONICAL, module, simplify))


def simplify(module: Module) -> Fingerprints:
    """Simplify a module until nothing changes, and sort the slots of its loops and branches.

    Args:
        module: Rewritten in place.

    Returns:
        Its hashes.
    """
    move_loop_invariants(module)
    while True:
        for step in SIMPLIFYING:
            step(module)
        # Folds may reveal an invariant carry, and a moved one more folds.
        if move_loop_invariants(module):
            continue
        hashes = order_slots(module)
        if not has_equal_loops(module, hashes):
            return hashes


def _run(
    passes: tuple[Pass, ...], module: Module, last: Callable[[Module], Fingerprints]
) -> Fingerprints:
    # Graphs are full of cycles and live long: every collection would walk them to free nothing.
    with pause_garbage_collection():
        try:
            for step in passes:
                step(module)
            return last(module)
        except RecursionError:
            raise IrSyntaxError("loops nested too deeply to sort their slots") from None
