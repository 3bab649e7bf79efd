"""Mixtures of experts: `ragged_dot` with its gradients, under vmap and sharded, and routing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from . import _tape as tape
from ._helpers import draw, exact_mixture, pull

defaults(platforms=("cpu",))

NO_DERIVATIVE = deviation(
    "jax<0.4.31",
    error="NotImplementedError",
    match="Differentiation rule for 'ragged_dot' not implemented",
    reason="ragged_dot had no derivative",
    issue="jax-ml/jax@9632a2d1a864",
)
TRANSPOSE_READS_TRACER = deviation(
    "jax>=0.4.31,<0.4.33",
    error="TracerArrayConversionError",
    reason="the first transpose rule passed group sizes to NumPy",
    issue="jax-ml/jax@9785368c7feb",
)
NO_BATCHING = deviation(
    "jax>=0.4.31,<0.4.35",
    error="NotImplementedError",
    match="Batching rule for 'ragged_dot' not implemented",
    reason="ragged_dot had no batching rule",
    issue="jax-ml/jax@f203a9fc9e1a",
)

ROWS, WIDTH, HIDDEN, EXPERTS = 8, 4, 6, 4

SIZES = {
    "uneven": [5, 1, 0, 2],
    "one_expert": [0, 0, 8, 0],
    "rows_left_over": [1, 2, 0, 1],
}


def _group(sizes):
    """Return the expert of each row, and whether it has one."""
    owner = np.repeat(np.arange(EXPERTS + 1), [*sizes, ROWS - sum(sizes)])
    return np.minimum(owner, EXPERTS - 1), (owner < EXPERTS)[:, None]


def _exact_ragged(sizes):
    """Return `ragged_dot` for group sizes on the tape."""
    owner, owned = _group(sizes)
    return lambda x, w: tape.einsum("mk,mkn->mn", x, w[owner]) * owned


def _operands(env):
    """Return rows, the weights of experts, and a cotangent."""
    shapes = [(ROWS, WIDTH), (EXPERTS, WIDTH, HIDDEN), (ROWS, HIDDEN)]
    return [draw(env, *shape, seed=i) for i, shape in enumerate(shapes)]


@probe(source="jax-ml/jax#20940")
def ragged_dot(env):
    """Each group of rows meets the weights of its expert; rows left over give zero."""
    x, w, _ = _operands(env)
    sizes = np.array(SIZES["rows_left_over"], np.int32)
    return Observed(jax.jit(lax.ragged_dot)(x, w, sizes), tape.vjp(_exact_ragged(sizes), x, w)[0])


@probe(
    source="jax-ml/jax@9632a2d1a864",
    params=["one_expert", "rows_left_over"],
    deviations=[NO_DERIVATIVE, TRANSPOSE_READS_TRACER],
)
def ragged_dot_gradient(env, name):
    """The gradients of `ragged_dot`: an expert without rows gets zero."""
    x, w, cotangent = _operands(env)
    sizes = np.array(SIZES[name], np.int32)
    grads = pull(lambda x, w: lax.ragged_dot(x, w, jnp.asarray(sizes)), x, w, cotangent=cotangent)[
        1
    ]
    return Observed(grads, tape.vjp(_exact_ragged(sizes), x, w, cotangent=cotangent)[1])


@probe(source="jax-ml/jax@f203a9fc9e1a", deviations=[NO_DERIVATIVE, NO_BATCHING])
def mapped_ragged_dot(env):
    """`vmap` of `ragged_dot` and its gradients over rows, weights and group sizes."""
    x, w, cotangent = (np.stack([a, a[::-1]]) for a in _operands(env))
    sizes = np.array([SIZES["uneven"], [2, 2, 2, 2]], np.int32)
    fn = jax.vmap(lambda x, w, s, c: jax.vjp(lambda *a: lax.ragged_dot(*a, s), x, w)[1](c))
    exact = [
        tape.vjp(_exact_ragged(s), *a, cotangent=c)[1]
        for s, c, *a in zip(sizes, cotangent, x, w, strict=True)
    ]
    expected = tuple(np.stack(grads) for grads in zip(*exact, strict=True))
    return Observed(jax.jit(fn)(x, w, sizes, cotangent), expected)


@probe(source="jax-ml/jax#20940")
def bfloat16_ragged_dot(env):
    """In bfloat16, with a float32 result by `preferred_element_type`, the products are exact."""
    x, w, _ = _operands(env)
    sizes = np.array(SIZES["uneven"], np.int32)
    narrow = [a.astype(jnp.bfloat16) for a in (x, w)]
    fn = jax.jit(lambda *a: lax.ragged_dot(*a, preferred_element_type=np.float32))
    exact = tape.vjp(_exact_ragged(sizes), *(a.astype(float) for a in narrow))[0]
    return Observed(fn(*narrow, sizes), exact)


LAYOUTS = {
    "rows": (("x",), ()),
    "contracted": ((None, "x"), (None, "x")),
    "experts": ((), ("x",)),
}


@probe(
    source="jax-ml/jax#20940",
    devices=2,
    params=[*LAYOUTS],
    deviations=[NO_DERIVATIVE, TRANSPOSE_READS_TRACER],
)
def sharded_ragged_dot(env, name):
    """`ragged_dot` and its gradients are right for sharded rows and weights."""
    x, w, cotangent = _operands(env)
    sizes = np.array(SIZES["uneven"], np.int32)
    mesh = env.mesh(2, "x")
    placed = [
        jax.device_put(a, NamedSharding(mesh, P(*spec)))
        for a, spec in zip((x, w), LAYOUTS[name], strict=True)
    ]
    out, grads = pull(
        lambda *a: lax.ragged_dot(*a, jnp.asarray(sizes)), *placed, cotangent=cotangent
    )
    expected, slopes = tape.vjp(_exact_ragged(sizes), x, w, cotangent=cotangent)
    return Observed((out, *grads), (expected, *slopes))


def _mixture(top):
    """Return a mixture by sorting tokens by expert and `ragged_dot`."""

    def mixture(x, router, w):
        gates, chosen = lax.top_k(jax.nn.softmax(x @ router), top)
        order = jnp.argsort(chosen.reshape(-1), stable=True)
        sizes = jnp.bincount(chosen.reshape(-1), length=EXPERTS).astype(jnp.int32)
        out = jnp.tanh(lax.ragged_dot(x[order // top], w, sizes))
        out = out * gates.reshape(-1)[order][:, None]
        return jnp.zeros((ROWS, HIDDEN), x.dtype).at[order // top].add(out)

    return mixture


@probe(source="jax-ml/jax#20940", deviations=[NO_DERIVATIVE, TRANSPOSE_READS_TRACER])
def top_k_routing(env):
    """Tokens sorted by expert give a top-2 mixture, and the gradients of router and experts."""
    top = 2
    x, w, cotangent = _operands(env)
    args = x, draw(env, WIDTH, EXPERTS, seed=7), w
    out, grads = pull(_mixture(top), *args, cotangent=cotangent)
    expected, slopes = tape.vjp(exact_mixture(top), *args, cotangent=cotangent)
    return Observed((out, *grads), (expected, *slopes))
