"""Write this program's jaxpr as the release at hand has it: `PYTHON generate.py OUT.json`.

Run it with the interpreter of a cell. The program is one whose meaning no release changed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from conformance.kit import compat
from conformance.worker.jaxprs import encode_jaxpr

TABLE = np.arange(100, dtype=np.float32)


def step(x: Any) -> Any:
    """Relax towards the neighbours until it changes little, on two shards."""

    def body(carry: Any) -> Any:
        x, _ = carry
        left = lax.ppermute(x, "x", [(0, 1), (1, 0)])
        new = jnp.where(x > left, x * 0.5, jax.nn.relu(left))
        return new, lax.pmax(jnp.max(jnp.abs(new - x)), "x")

    return lax.while_loop(lambda carry: carry[1] > 1e-3, body, (x, jnp.float32(1)))


def program(x: Any, w: Any) -> Any:
    """Call it sharded, then reduce, scan, branch and look up."""
    mesh = Mesh(np.array(jax.devices()[:2]), ("x",))
    spec = PartitionSpec("x")
    y, residual = compat.shard_map(
        step, mesh=mesh, in_specs=spec, out_specs=(spec, PartitionSpec()), check=False
    )(x)
    total, sums = lax.scan(lambda c, row: (c + row @ w, jnp.sum(c)), y, w)
    best = lax.cond(residual < 1, jnp.sin, jnp.cos, total)
    return best, sums, lax.rsqrt(best) + TABLE[0], (y * TABLE.sum()).astype(jnp.bfloat16), TABLE


x, w = np.ones(4, np.float32), np.ones((4, 4), np.float32)
document = json.loads(encode_jaxpr(jax.jit(program).trace(x, w).jaxpr))
document["files"] = [Path(file).name for file in document["files"]]
Path(sys.argv[1]).write_text(json.dumps(document, separators=(",", ":")) + "\n")
