"""The programs that every release exports: their functions, arguments and references.

Each is a function of the jax in use, so that a name means the same program to the release that
exports it and to the release that loads the export.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

if TYPE_CHECKING:
    from collections.abc import Callable

SHARDS = 4


@dataclass(frozen=True)
class ExportedProgram:
    """A program to export.

    Attributes:
        fn: The function.
        args: Arguments for a call of the export.
        reference: Expected result for them, in NumPy; None to expect the result of the writer.
        specs: Arguments for the export; by default those for the call.
        shards: Whether the arguments are split over four devices.
        typed: Whether the arguments are the data of typed keys.
        keywords: Keywords of `jax.export.export`.
        gradient: Whether the gradient is exported, too, and called instead.
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    reference: Callable[..., Any] | None
    specs: Callable[[], tuple[Any, ...]] | None = None
    shards: bool = False
    typed: bool = False
    keywords: dict[str, Any] = field(default_factory=dict)
    gradient: bool = False


def matrix():
    """Return a symmetric positive definite matrix, float32[4,4]."""
    half = np.arange(16, dtype=np.float32).reshape(4, 4) / 8
    return half @ half.T + 2 * np.eye(4, dtype=np.float32)


def rows():
    """Return numbers between 0 and 1, float32[8,4]."""
    return (np.arange(32, dtype=np.float32).reshape(8, 4) + 1) / 40


def _loops(x):
    total, _ = lax.scan(lambda c, row: (c + row, row), jnp.zeros(4, x.dtype), x)
    doubled = lax.while_loop(lambda y: y.sum() < 100, lambda y: 2 * y, total)
    return lax.cond(doubled[0] > 20, lambda y: y - 1, lambda y: y + 1, doubled)


def _loops_in_numpy(x):
    y = x.sum(0, dtype=np.float64)
    while y.sum() < 100:
        y = 2 * y
    return y - 1 if y[0] > 20 else y + 1


def _spread(fn):
    """Map a function over four devices, with the `shard_map` of the release."""
    mesh = Mesh(np.array(jax.devices()[:SHARDS]), ("x",))
    if hasattr(jax, "shard_map"):
        return jax.shard_map(fn, mesh=mesh, in_specs=P("x"), out_specs=P())
    from jax.experimental.shard_map import shard_map  # noqa: PLC0415 - removed later

    return shard_map(fn, mesh, in_specs=P("x"), out_specs=P())


def split_rows(x):
    """Return an array, split over four devices by rows."""
    mesh = Mesh(np.array(jax.devices()[:SHARDS]), ("x",))
    return jax.device_put(x, NamedSharding(mesh, P("x")))


def make_call_args(program):
    """Return the arguments with which a program is called."""
    if program.typed:
        return tuple(jax.random.wrap_key_data(data) for data in program.args)
    return tuple(map(split_rows, program.args)) if program.shards else program.args


def make_export_args(program):
    """Return the arguments for which a program is exported."""
    return program.specs() if program.specs else make_call_args(program)


def _symbolic():
    return (jax.ShapeDtypeStruct(export.symbolic_shape("batch, 4"), np.float32),)


PROGRAMS = {
    "elementwise": ExportedProgram(
        fn=lambda x: jnp.sin(x) @ x.T + 1,
        args=(rows(),),
        reference=lambda x: np.sin(x.astype(np.float64)) @ x.T + 1,
    ),
    "dynamic_shape": ExportedProgram(
        fn=lambda x: (x * x.shape[0]).sum(0),
        args=(rows(),),
        reference=lambda x: 8 * x.sum(0, dtype=np.float64),
        specs=_symbolic,
    ),
    "control_flow": ExportedProgram(fn=_loops, args=(rows(),), reference=_loops_in_numpy),
    "gradient": ExportedProgram(
        fn=lambda x: (jnp.tanh(x) ** 2).sum(),
        args=(rows(),),
        reference=lambda x: 2 * np.tanh(x.astype(np.float64)) / np.cosh(x.astype(np.float64)) ** 2,
        gradient=True,
    ),
    "sharded": ExportedProgram(
        fn=lambda x: (x * 2).sum(0),
        args=(rows(),),
        reference=lambda x: 2 * x.sum(0, dtype=np.float64),
        shards=True,
    ),
    "shard_map": ExportedProgram(
        fn=lambda x: _spread(lambda y: lax.psum(y.sum(), "x"))(x),  # noqa: PLW0108 - no devices yet
        args=(rows(),),
        reference=lambda x: x.sum(dtype=np.float64),
        shards=True,
    ),
    "cholesky": ExportedProgram(
        fn=jnp.linalg.cholesky,
        args=(matrix(),),
        reference=lambda a: np.linalg.cholesky(a.astype(np.float64)),
    ),
    "solve": ExportedProgram(
        fn=lambda a: jnp.linalg.solve(a, jnp.ones(4)),
        args=(matrix(),),
        reference=lambda a: np.linalg.solve(a.astype(np.float64), np.ones(4)),
    ),
    "eigenvalues": ExportedProgram(
        fn=lambda a: jnp.linalg.eigh(a)[0],
        args=(matrix(),),
        reference=lambda a: np.linalg.eigvalsh(a.astype(np.float64)),
    ),
    "singular_values": ExportedProgram(
        fn=lambda a: jnp.linalg.svd(a, compute_uv=False),
        args=(matrix(),),
        reference=lambda a: np.linalg.svd(a.astype(np.float64), compute_uv=False),
    ),
    "random_bits": ExportedProgram(
        fn=lambda data: jax.random.bits(jax.random.wrap_key_data(data), (2,)),
        args=(np.array([0, 7], np.uint32),),
        reference=None,
    ),
    "typed_key": ExportedProgram(
        fn=jax.random.key_data,
        args=(np.array([0, 7], np.uint32),),
        reference=lambda data: data,
        typed=True,
    ),
    "top_k": ExportedProgram(
        fn=lambda x: lax.top_k(x, 2)[0],
        args=(rows(),),
        reference=lambda x: -np.sort(-x, axis=1)[:, :2],
    ),
    "special_function": ExportedProgram(
        fn=lambda x: lax.erf_inv(x) + lax.asin(x),
        args=(np.array([-0.5, 0.0, 0.5], np.float32),),
        reference=lambda x: np.array([-0.4769362762, 0, 0.4769362762]) + np.arcsin(x.astype(float)),
    ),
    "two_platforms": ExportedProgram(
        fn=lambda x: lax.platform_dependent(x, cpu=lambda y: y + 1, tpu=lambda y: y + 2),
        args=(rows(),),
        reference=lambda x: x.astype(np.float64) + 1,
        keywords={"platforms": ("cpu", "tpu")},
    ),
    "narrow_types": ExportedProgram(
        fn=lambda x: (x.astype(jnp.bfloat16) * 2, x.astype(jnp.float8_e4m3fn)),
        args=(np.array([0.5, 1.5], np.float32),),
        reference=lambda x: (2 * x, x),
    ),
}
