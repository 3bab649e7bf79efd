"""Readings of an HLO text by plain means; what a file of its own asserts of facts claimed.

Each is pasted into such a file as it stands here, so it uses the standard library alone.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def collectives(hlo: str) -> dict[str, int]:
    """Count collectives by kind; a start and its done are one."""
    kinds = "all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter"
    return dict(Counter(re.findall(rf" ({kinds})(?:-start)?\(", hlo)))


def custom_calls(hlo: str) -> dict[str, int]:
    """Count custom calls by target."""
    return dict(Counter(re.findall(r'custom_call_target="([^"]*)"', hlo)))


def host_compute(hlo: str) -> bool:
    """Say whether anything is marked to be computed on the host."""
    return '_xla_compute_type="host"' in hlo or 'execution_thread="host"' in hlo


def memory_spaces(hlo: str) -> dict[str, int]:
    """Count layouts that name the host's memory."""
    return dict(Counter(re.findall(r"\bS\(5\)", hlo)))


def donation(hlo: str) -> list[str]:
    """Return which output may reuse which parameter."""
    alias = r"\{([\d, ]*)\}: \((\d+), \{\}, ([\w-]+)\)"
    head = hlo.partition("\n")[0].partition("entry_computation_layout=")[0]
    found = re.findall(alias, head.partition("input_output_alias=")[2])
    return sorted(f"parameter {number} -> output [{out}] {kind}" for out, number, kind in found)


def dtypes(hlo: str) -> list[str]:
    """Return the element types."""
    return sorted(set(re.findall(r"\b(pred|bf16|[fsu]\d+|c64|c128)\[", hlo)))


READINGS: Final[Mapping[str, Callable[[str], Any]]] = {
    "collectives": collectives,
    "custom_calls": custom_calls,
    "host_compute": host_compute,
    "memory_spaces": memory_spaces,
    "donation": donation,
    "dtypes": dtypes,
}


def claimed(value: Any) -> Any:
    """Return a claim as a reading gives it: a count of 0 is no entry."""
    if isinstance(value, dict):
        return {name: count for name, count in value.items() if count != 0}
    return list(value) if isinstance(value, tuple) else value


def holds(name: str, value: Any, hlo: str) -> bool:
    """Say whether a claim holds of a text by its plain reading."""
    return bool(READINGS[name](hlo) == claimed(value))


def text_of(name: str) -> str:
    """Return a reading as it stands in a file of its own."""
    return inspect.getsource(READINGS[name]).strip()
