"""Comparison of IRs with their goldens: fingerprints, and the facts that fail a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.model.record import IrStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.model.golden import GoldenIr
    from conformance.model.record import IrRecord

GATING: Final = (
    "collectives",
    "collective_ops",
    "host_compute",
    "memory_spaces",
    "custom_calls",
    "donation",
    "dtypes",
    "parameters",
    "results",
)
"""Facts whose change fails a run; the others are for reports."""

FACT: Final = "fact "
"""Beginning of a sentence about a fact."""
_SIDES = ("parameters", "results")


def compare_ir(seen: IrRecord, golden: GoldenIr | None) -> IrStatus:
    """Compare one IR of a job with its golden, by fingerprint.

    Args:
        seen: Record of the IR.
        golden: Golden of the IR, if any.

    Returns:
        `unknown` if either side has no fingerprint; `regrouped` if only the exact forms differ.
    """
    # An IR with unknown grammar has no fingerprint; an equal error would not be an equal IR.
    if golden is None or not golden.canonical or not seen.canonical:
        return IrStatus.UNKNOWN
    if seen.canonical != golden.canonical:
        return IrStatus.CHANGED
    # Goldens that predate exact fingerprints have none.
    if golden.exact and seen.exact != golden.exact:
        return IrStatus.REGROUPED
    return IrStatus.SAME


def select_gating(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts whose change fails a run."""
    return {name: facts[name] for name in GATING if name in facts}


def find_changed_facts(seen: Mapping[str, Any], golden: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for each gating fact that differs from its golden.

    Args:
        seen: All facts of a job; empty without an HLO that could be read.
        golden: Recorded facts; empty if there are none.

    Yields:
        Name, observed, golden.
    """
    # Without readable facts on both sides there is nothing to compare; the IR status reports it.
    if not golden or not seen:
        return
    for name in GATING:
        # A golden of an older version of the facts lacks new ones; that is no change of JAX.
        if name not in golden or name not in seen:
            continue
        before, after = golden[name], seen[name]
        if name in _SIDES:
            yield from _compare_side(name, after, before)
        elif before != after:
            yield f"{FACT}{name}: {_describe_difference(after, before)}"


def _compare_side(name: str, seen: list[Any], golden: list[Any]) -> Iterator[str]:
    """Compare parameters or results row by row; a sharding missing on one side is no difference."""
    if len(seen) != len(golden):
        yield f"{FACT}{name}: {len(seen)} of them, golden {len(golden)}"
        return
    for number, (after, before) in enumerate(zip(seen, golden, strict=True)):
        for key in ("type", "memory", "sharding"):
            # jax 0.12.0 stopped printing shardings in optimised HLO: absence is not replication.
            is_unstated = key == "sharding" and (key not in after or key not in before)
            if not is_unstated and after.get(key) != before.get(key):
                yield (
                    f"{FACT}{name}[{number}] {key}: {after.get(key, 'none')}, "
                    f"golden {before.get(key, 'none')}"
                )


def _describe_difference(seen: Any, golden: Any) -> str:
    """Return what differs between two facts, equal parts left out."""
    if isinstance(seen, dict) and isinstance(golden, dict):
        names = [n for n in {**golden, **seen} if seen.get(n, 0) != golden.get(n, 0)]
        return "; ".join(f"{n} {seen.get(n, 0)}, golden {golden.get(n, 0)}" for n in names)
    if isinstance(seen, list) and isinstance(golden, list):
        new = [str(item) for item in seen if item not in golden]
        gone = [str(item) for item in golden if item not in seen]
        words = [f"{', '.join(new)} new"] if new else []
        words += [f"{', '.join(gone)} gone"] if gone else []
        return "; ".join(words)
    return f"{seen}, golden {golden}"
