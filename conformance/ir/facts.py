"""What an optimised HLO module says in compiler-neutral terms: collectives, host work, calls out.

A line reader, for now: one instruction a line, in the long spelling (`f32[4]{0} %x` operands, up
to jax 0.5) and the short one, with or without `%`, of any backend.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from conformance.errors import ConformanceError

if TYPE_CHECKING:
    from collections.abc import Iterator

COLLECTIVES = frozenset(
    {
        "all-gather",
        "all-reduce",
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "ragged-all-to-all",
        "reduce-scatter",
    }
)

_INSTRUCTION = re.compile(r"\s*(?:ROOT )?%?[A-Za-z_][\w.\-]* = ")
_OPCODE = re.compile(r"([a-z][a-z0-9\-]*)\(")
_TARGET = re.compile(r'\bcustom_call_target="((?:[^"\\]|\\.)*)"')
_ON_HOST = re.compile(r'\b_xla_compute_type="host"|\b(?:async_)?execution_thread="host"')
_HOST_TARGETS = frozenset({"HostExecute"})
_HOST_SPACE = re.compile(r"\bS\(5\)")


class HloSyntaxError(ConformanceError):
    """A line of HLO text that this reader does not understand."""


def facts(hlo_text: str) -> dict[str, Any]:
    """Return the facts of an optimised HLO module.

    Args:
        hlo_text: The module as `compiled.as_text()` prints it.

    Returns:
        `collectives`: count by opcode, an async start and its done being one;
        `host_compute`: whether anything is marked to be computed on the host;
        `custom_calls`: count by target.

    Raises:
        HloSyntaxError: If a line looks like an instruction but has no opcode.
    """
    collectives: Counter[str] = Counter()
    custom_calls: Counter[str] = Counter()
    host_compute = False
    for opcode, shape, line in _instructions(hlo_text):
        base = opcode.removesuffix("-start")
        if base in COLLECTIVES:
            collectives[base] += 1
        elif base == "custom-call":
            target = _TARGET.search(line)
            custom_calls[target[1] if target else ""] += 1
        host_compute = host_compute or _is_host(base, shape, line)
    return {
        "collectives": dict(sorted(collectives.items())),
        "host_compute": host_compute,
        "custom_calls": dict(sorted(custom_calls.items())),
    }


def _instructions(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield opcode, result shape and whole line of each instruction."""
    for number, line in enumerate(text.splitlines(), start=1):
        begin = _INSTRUCTION.match(line)
        if begin is None:
            continue
        end = _shape_end(line, begin.end())
        opcode = _OPCODE.match(line, end + 1)
        if opcode is None:
            raise HloSyntaxError(
                f"hlo line {number}: {line.strip()[:120]!r} has no opcode after its shape; "
                "expected `name = shape opcode(`"
            )
        yield opcode[1], line[begin.end() : end], line


def _shape_end(line: str, start: int) -> int:
    """Return where a shape ends: the first space outside parentheses and braces."""
    depth = 0
    for index in range(start, len(line)):
        character = line[index]
        if character in "({[":
            depth += 1
        elif character in ")}]":
            depth -= 1
        elif character == " " and depth == 0:
            return index
    return len(line)


def _is_host(opcode: str, shape: str, line: str) -> bool:
    if opcode == "call" and _HOST_SPACE.search(shape):
        return True
    if opcode == "custom-call":
        target = _TARGET.search(line)
        if target and target[1] in _HOST_TARGETS:
            return True
    # Text quoted in metadata escapes its quotes, so this is an attribute.
    return _ON_HOST.search(line) is not None
