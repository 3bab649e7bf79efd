"""The normal forms themselves: lists of passes, and what they make of a module."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from conformance.collecting import uncollected
from conformance.ir.fingerprint import fingerprint, fingerprints
from conformance.ir.graph import IrSyntaxError
from conformance.ir.kernels import read_kernels
from conformance.ir.normal.addresses import drop_addresses
from conformance.ir.normal.asynchronous import fold_async
from conformance.ir.normal.attributes import drop_compilers_choice, drop_spelling
from conformance.ir.normal.dead import drop_dead, merge_equal
from conformance.ir.normal.folding import (
    fold_copies,
    fold_identities,
    fold_reshapes,
    order_comparisons,
)
from conformance.ir.normal.inlining import inline_calls
from conformance.ir.normal.layouts import drop_layouts, resolve_bitcasts
from conformance.ir.normal.ordering import has_equal_loops, order_slots
from conformance.ir.normal.partitioning import unify_partitioning
from conformance.ir.normal.regions import close_regions
from conformance.ir.normal.slots import hoist_invariants, name_slots
from conformance.ir.normal.spaces import drop_scalar_memory, keep_host_spaces, note_spaces
from conformance.ir.normal.spelling import spell_alike
from conformance.ir.normal.tuples import fold_tuples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.ir.fingerprint import Fingerprints
    from conformance.ir.graph import Module

    Pass = Callable[[Module], object]

VERSION: Final = 1
"""Version of the normal forms: a golden of another one is tainted, not different."""

STRUCTURE: Final[tuple[Pass, ...]] = (
    spell_alike,
    close_regions,
    resolve_bitcasts,
    drop_scalar_memory,
    note_spaces,
    drop_layouts,
    drop_spelling,
    drop_addresses,
    read_kernels,
)
"""Take away what is only spelling."""

NEUTRAL: Final[tuple[Pass, ...]] = (
    drop_compilers_choice,
    keep_host_spaces,
    fold_async,
    inline_calls,
    unify_partitioning,
    fold_tuples,
    name_slots,
    fold_copies,
    order_comparisons,
)
"""Take away, after `STRUCTURE`, what a compiler is free to choose; then comes `settle`."""
SETTLING: Final[tuple[Pass, ...]] = (fold_identities, fold_reshapes, drop_dead, merge_equal)
"""What one of them leaves may be something for another."""


def to_structure(module: Module) -> str:
    """Bring a module into the form `structure`.

    Args:
        module: As parsed; rewritten in place.

    Returns:
        Its fingerprint, 24 hexadecimal digits.

    Raises:
        IrSyntaxError: If it is nested too deeply, or calls itself.
    """
    return fingerprint(module, structured(module))


def structured(module: Module) -> Fingerprints:
    """Bring a module into the form `structure`.

    Args:
        module: As parsed; rewritten in place.

    Returns:
        The hashes of all it uses.

    Raises:
        IrSyntaxError: If it is nested too deeply, or calls itself.
    """
    with _steady():
        for step in STRUCTURE:
            step(module)
        return fingerprints(module)


def to_neutral(module: Module) -> str:
    """Bring a module from the form `structure` into the form `neutral`.

    Args:
        module: In the form `structure`; rewritten in place.

    Returns:
        Its fingerprint, 24 hexadecimal digits.

    Raises:
        IrSyntaxError: If it is nested too deeply, or calls itself.
    """
    with _steady():
        for step in NEUTRAL:
            step(module)
        return fingerprint(module, settle(module))


def settle(module: Module) -> Fingerprints:
    """Take away what loops and branches need not carry and what is done in vain; sort the rest.

    Args:
        module: Rewritten in place until there is nothing left to do.

    Returns:
        Its hashes.
    """
    hoist_invariants(module)
    while True:
        for step in SETTLING:
            step(module)
        if hoist_invariants(module):
            continue
        hashes = order_slots(module)
        if not has_equal_loops(module, hashes):
            return hashes


@contextmanager
def _steady() -> Iterator[None]:
    """Spare the collector graphs that it could only walk in vain; name what nests too deeply."""
    with uncollected():
        try:
            yield
        except RecursionError:
            raise IrSyntaxError("loops nested too deeply to be put in order") from None
