"""Programs whose computations another release repeats: `benchmarks/layers.py` records them."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

MATRIX = np.random.RandomState(0).randn(4, 4).astype(np.float32)
POSITIVE = MATRIX @ MATRIX.T + np.eye(4, dtype=np.float32)
GRID = np.arange(16.0, dtype=np.float32).reshape(4, 4)
MESH = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))


def place(*axes):
    """Return a sharding over the mesh."""
    return NamedSharding(MESH, PartitionSpec(*axes))


def shard_map(*args, **more):
    """Call `shard_map` where a release has it."""
    from jax.experimental import shard_map as old

    return getattr(jax, "shard_map", old.shard_map)(*args, **more)


def sharded():
    """Multiply a matrix that is spread over the mesh."""
    function = jax.jit(lambda x: (x @ x.T).sum(0), out_shardings=place("a"))
    return function(jax.device_put(GRID, place("a", "b")))


def mapped():
    """Sum over an axis of the mesh."""
    specs = PartitionSpec("a", "b"), PartitionSpec(None, "b")
    function = shard_map(
        lambda x: jax.lax.psum(x, "a"), mesh=MESH, in_specs=specs[0], out_specs=specs[1]
    )
    return jax.jit(function)(GRID)


def power(x):
    """Raise to a power in a loop."""
    return jax.lax.fori_loop(0, 3, lambda _, c: c * x, x)


PROGRAMS = {
    "sine": lambda: jax.jit(jnp.sin)(jnp.arange(4.0)),
    "scan": lambda: jax.jit(lambda x: jax.lax.scan(lambda c, a: (c + a, c * a), 0.0, x))(
        jnp.arange(5.0)
    ),
    "sort": lambda: jnp.sort(jnp.array([3, 1, 2])),
    "top_k": lambda: jax.jit(lambda x: jax.lax.top_k(x, 2))(jnp.array([3.0, 1.0, 2.0])),
    "normal": lambda: jax.random.normal(jax.random.PRNGKey(0), (3,)),
    "typed_keys": lambda: jax.random.split(jax.random.key(0)),
    "cholesky": lambda: jnp.linalg.cholesky(POSITIVE),
    "eigh": lambda: jnp.linalg.eigh(POSITIVE),
    "qr": lambda: jnp.linalg.qr(MATRIX),
    "lu": lambda: jax.scipy.linalg.lu(MATRIX),
    "svd": lambda: jnp.linalg.svd(MATRIX),
    "eig": lambda: jnp.linalg.eig(MATRIX),
    "fft": lambda: jnp.fft.fft(MATRIX),
    "bfloat16": lambda: jax.jit(lambda x: x @ x)(jnp.asarray(MATRIX, jnp.bfloat16)),
    "float8": lambda: jax.jit(lambda x: x.astype(jnp.float32) * 2)(
        jnp.asarray(MATRIX, jnp.float8_e4m3fn)
    ),
    "int4": lambda: jax.jit(lambda x: x + x)(jnp.asarray([1, 2, 3], jnp.int4)),
    "donated": lambda: jax.jit(lambda x: x + 1, donate_argnums=0)(jnp.arange(4.0)),
    "tree": lambda: jax.jit(lambda x: (x, x + 1, {"a": x * 2}))(jnp.arange(3)),
    "unused": lambda: jax.jit(lambda x, _: x * 2)(1.0, 2.0),
    "complex": lambda: jnp.sqrt(jnp.array([-4 - 0j, 1 + 2j])),
    "sharded": sharded,
    "mapped": mapped,
    "pmap": lambda: jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(GRID[0]),
    "gradients": lambda: jax.jit(jax.vmap(jax.grad(power)))(jnp.arange(3.0)),
    "ahead_of_time": lambda: jax.jit(jnp.cos).lower(GRID).compile()(GRID),
    "callback": lambda: jax.jit(
        lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((4, 4), jnp.float32), x)
    )(GRID),
}

for program in PROGRAMS.values():
    try:
        jax.block_until_ready(program())
    except Exception as error:  # a release may refuse a dtype
        print(type(error).__name__)
