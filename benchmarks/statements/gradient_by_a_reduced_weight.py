"""The gradient by a weight that is reduced over two axes, in a process that may end."""

import subprocess
import sys

PROGRAM = """
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((1, 2, 1), ("x", "y", "z"), axis_types=(AxisType.Explicit,) * 3)
with jax.set_mesh(mesh):
    weight = jax.device_put(np.ones((4, 8, 4), np.float32), P(None, None, "z", reduced={"x", "y"}))
    rows = jax.device_put(np.ones((2, 2, 8), np.float32), P("y"))

    @jax.shard_map(out_specs=P("y"))
    def product(rows, weight):
        return jnp.einsum("btd,edh->bth", rows, weight)

    def loss(weight):
        return product(rows, jax.reshard(weight, P())).sum()

    print(sorted(jax.jit(jax.grad(loss))(weight).sharding.spec.unreduced))
"""

done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
print(done.stdout or f"no result: status {done.returncode}")
