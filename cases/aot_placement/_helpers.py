"""Functions that read StableHLO, shardings and outcomes, for all topics of this family."""

from __future__ import annotations

import re
from typing import Any

import jax
from jax import lax

from conformance.kit import CaseError

MARK = "_xla_compute_type"


def by_platform(x: Any) -> Any:
    """Add 1 if lowered for a CPU, 2 if lowered for a TPU: the program of jax#27825."""
    return lax.platform_dependent(x, cpu=lambda y: y + 1.0, tpu=lambda y: y + 2.0)


def read_chosen_branch(stablehlo: str) -> float:
    """Return the number that `by_platform` adds to a float32 scalar, read from its StableHLO.

    Recent releases keep only the chosen branch. Earlier releases keep both, under a case whose
    index is a constant passed through a clamp.
    """
    added = [float(v) for v in re.findall(r"dense<([0-9.e+]+)> : tensor<f32>", stablehlo)]
    clamp = re.search(r"stablehlo\.clamp %\w+, (%\w+), ", stablehlo)
    if clamp is None:
        (only,) = added
        return only
    index = re.search(re.escape(clamp[1]) + r" = stablehlo\.constant [^:]*dense<(\d+)>", stablehlo)
    return added[int(index[1])]


def is_marked(stablehlo: str, op: str) -> bool:
    """Return whether every `op` of a StableHLO text is placed on the host.

    Raises:
        CaseError: If there is no such operation.
    """
    lines = [line for line in stablehlo.splitlines() if f"stablehlo.{op} " in line]
    if not lines:
        raise CaseError(f"no {op} in the module")
    return all(MARK in line for line in lines)


def format_shards(array: Any) -> str:
    """Return the devices with the shapes of their shards, e.g. `0:(2, 4) 1:(2, 4)`."""
    shards = sorted((s.device.id, s.data.shape) for s in array.addressable_shards)
    return " ".join(f"{device}:{shape}" for device, shape in shards)


def classify_outcome(call: Any) -> str:
    """Return `ok`, or the name of the exception that a call raises."""
    try:
        jax.block_until_ready(call())
    except Exception as error:  # noqa: BLE001 - the type of the error is the observation
        return type(error).__name__
    return "ok"
