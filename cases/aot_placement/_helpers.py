"""Readings of StableHLO and shardings that the topics of this family share."""

from __future__ import annotations

import re
from typing import Any

import jax
from jax import lax

from conformance.kit import CaseError

MARK = "_xla_compute_type"


def by_platform(x: Any) -> Any:
    """Add 1 where lowered for a CPU, 2 where lowered for a TPU: the program of jax#27825."""
    return lax.platform_dependent(x, cpu=lambda y: y + 1.0, tpu=lambda y: y + 2.0)


def chosen_branch(stablehlo: str) -> float:
    """Return what `by_platform` adds to a float32 scalar, read from its StableHLO.

    Recent releases leave only the chosen branch. Older ones leave both, under a case whose index
    is a constant passed through a clamp.
    """
    added = [float(v) for v in re.findall(r"dense<([0-9.e+]+)> : tensor<f32>", stablehlo)]
    clamp = re.search(r"stablehlo\.clamp %\w+, (%\w+), ", stablehlo)
    if clamp is None:
        (only,) = added
        return only
    index = re.search(re.escape(clamp[1]) + r" = stablehlo\.constant [^:]*dense<(\d+)>", stablehlo)
    return added[int(index[1])]


def marked(stablehlo: str, op: str) -> bool:
    """Return whether every `op` of a StableHLO text is placed on the host.

    Raises:
        CaseError: If there is no such operation.
    """
    lines = [line for line in stablehlo.splitlines() if f"stablehlo.{op} " in line]
    if not lines:
        raise CaseError(f"no {op} in the module")
    return all(MARK in line for line in lines)


def tiles(array: Any) -> str:
    """Return which device holds a shard of which shape, e.g. `0:(2, 4) 1:(2, 4)`."""
    held = sorted((s.device.id, s.data.shape) for s in array.addressable_shards)
    return " ".join(f"{device}:{shape}" for device, shape in held)


def outcome(call: Any) -> str:
    """Return `ok`, or the name of the exception that calling raises."""
    try:
        jax.block_until_ready(call())
    except Exception as error:  # noqa: BLE001 - which one it is, is what is observed
        return type(error).__name__
    return "ok"
