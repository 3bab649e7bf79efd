"""Tracing and compiling of programs with many equations, layers or nested transforms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, defaults, deviation, probe, program

defaults(platforms=("cpu", "tpu", "cuda"), rtol=1e-4, atol=1e-5)

X = np.linspace(-1, 1, 8, dtype=np.float32)
LAYERS = (4, 8, 16, 32)
FLAX_IMPORT_FAILS = deviation(
    "jax==0.11.2",
    packages={"flax": "<0.12.10"},
    error="AttributeError",
    match="has no attribute 'HiPrimitive'",
    reason="the Flax release current at the time fails to import on jax 0.11.2",
    issue="google/flax#5596",
)


def _weights(layers):
    return np.random.RandomState(layers).uniform(-0.3, 0.3, (layers, 8, 8)).astype(np.float32)


def _apply(ws, x):
    for w in ws:
        x = np.tanh(x @ w)
    return x


@probe(source="jax-ml/jax#15290", sizes=(1_000, 10_000, 100_000), platforms=("cpu",), timeout=120)
def equations_of_a_jaxpr(env, size):
    """Only traced: each call of a primitive makes an equation."""

    def chain(x):
        for _ in range(size):
            x = lax.sin(x)
        return x

    return Observed(len(jax.make_jaxpr(chain)(1.0).eqns), size)


@program(source="jax-ml/jax#15290", sizes=(100, 200, 400, 800))
def equations_to_compile(env, size):
    """A chain of additions and sines, without a loop."""

    def chain(x, n):
        for _ in range(size // 2):
            x = n.sin(x + 1)
        return x

    return Program(lambda x: chain(x, jnp), (X,), reference=lambda x: chain(x, np))


@program(source="jax-ml/jax#26162", sizes=LAYERS)
def unrolled_layers(env, size):
    """Layers in a Python loop: tracing and compiling grow with their number."""

    def run(ws, x):
        for i in range(size):
            x = jnp.tanh(x @ ws[i])
        return x

    return Program(run, (_weights(size), X), reference=_apply)


@program(source="jax-ml/jax#26162", sizes=LAYERS)
def scanned_layers(env, size):
    """Layers in a scan: tracing and compiling take the same for any number."""

    def run(ws, x):
        return lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, ws)[0]

    return Program(run, (_weights(size), X), reference=_apply)


@program(source="jax-ml/jax#26162", sizes=LAYERS)
def gradient_of_unrolled_layers(env, size):
    """The backward pass of layers in a Python loop."""
    ws = _weights(size)

    def loss(x):
        for w in ws:
            x = jnp.tanh(x @ w)
        return x.sum()

    def slope(x):
        xs = [x.astype(np.float64)]
        for w in ws:
            xs.append(np.tanh(xs[-1] @ w))
        grad = np.ones(8)
        for w, after in zip(ws[::-1], xs[:0:-1], strict=True):
            grad = (grad * (1 - after**2)) @ w.T
        return grad

    return Program(jax.grad(loss), (X,), reference=slope)


@program(source="jax-ml/jax#26162")
def nested_derivatives(env):
    """The fourth derivative of a product of functions."""
    f = lambda x: jnp.sin(x) * jnp.exp(x)  # noqa: E731 - short
    for _ in range(4):
        f = jax.grad(f)
    return Program(jax.vmap(f), (X,), reference=lambda x: -4 * np.sin(x) * np.exp(x), jit={})


@program(source="jax-ml/jax#26162")
def hessian(env):
    """Forward over reverse mode."""
    return Program(
        jax.hessian(lambda x: (jnp.sin(x) ** 2).sum()), (X,),
        reference=lambda x: np.diag(2 * np.cos(2 * x)),
    )  # fmt: skip


@program(source="jax-ml/jax#26162")
def nested_batches(env):
    """Three levels of `vmap` over a product."""
    f = lambda a, b: (a * b).sum()  # noqa: E731 - short
    for axes in ((None, 0), (0, None), (0, 0)):
        f = jax.vmap(f, axes)
    a = np.arange(60, dtype=np.float32).reshape(3, 4, 5) / 60
    return Program(f, (a, a + 1), reference=lambda a, b: np.einsum("nij,nkj->nik", a, b))


@program(source="jax-ml/jax#26162", sizes=(4, 8, 16, 32))
def nested_calls_of_jit(env, size):
    """Each calls the next one, jitted: traced once each."""

    def make(depth):
        if not depth:
            return lambda x: x
        inner = jax.jit(make(depth - 1))
        return lambda x: inner(0.5 * x) + 0.5

    return Program(make(size), (X,), reference=lambda x: x * 0.5**size + 0.5 * size)


@program(source="jax-ml/jax#26162", sizes=(4, 8, 16, 32))
def conditions_in_a_chain(env, size):
    """As many `cond`s, one after the other."""

    def run(x):
        for _ in range(size):
            x = lax.cond(x[0] > 0, lambda x: x - 1, lambda x: x + 1, x)
        return x

    def exact(x):
        for _ in range(size):
            x = x - 1 if x[0] > 0 else x + 1
        return x

    return Program(run, (X,), reference=exact)


@probe(
    source="google/flax#1080", sizes=(10, 100, 1000), requires=["flax>=0.8.4"], platforms=("cpu",)
)
def modules_of_nnx(env, size):
    """Layers of one NNX module are split into graph and state, merged and counted."""
    from flax import nnx  # noqa: PLC0415 - only cells with flax import it

    class Layers(nnx.Module):
        def __init__(self):
            for i in range(size):
                setattr(self, f"layer{i}", nnx.Param(X))

    graph, state = nnx.split(Layers())
    merged = nnx.merge(graph, state)
    return Observed(len(jax.tree_util.tree_leaves(nnx.state(merged))), size)
