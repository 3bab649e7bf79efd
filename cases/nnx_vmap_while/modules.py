"""NNX modules in loops under `nnx.vmap`, with a trip count for each example.

flax#4700 put a module in the carry of `nnx.while_loop` under `nnx.vmap(..., in_axes=None)`. The
loop batched the parameters, and vmap refused the state that NNX writes back after each
transformation. flax#4709 is the same with a fori_loop inside a cond. jax fixed both, in 0.6.0
(jax#27937) and 0.6.1 (jax#28210); Flax did not change. `plain_lax` has the same loops without Flax.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax

from conformance.kit import Observed, Program, defaults, deviation, probe, program, raises

from ._helpers import BATCHED_KERNEL, compute_expected, data

defaults(requires=["flax>=0.10.2"])


class Layer(nnx.Module):
    """`tanh(x @ kernel)`."""

    def __init__(self, kernel):
        self.kernel = nnx.Param(kernel)

    def __call__(self, x):  # noqa: D102 - see the class
        return jnp.tanh(x @ self.kernel[...])


class Steps(nnx.Variable):
    """Number of calls."""


class Counting(Layer):
    """A layer that counts its calls."""

    def __init__(self, kernel, steps):
        super().__init__(kernel)
        self.steps = Steps(steps)

    def __call__(self, x):  # noqa: D102 - see the class
        self.steps.value = self.steps.value + 1
        return super().__call__(x)


def _while(model, x, n):
    def body(carry):
        i, x, model = carry
        return i + 1, model(x), model

    return nnx.while_loop(lambda carry: carry[0] < n, body, (0, x, model))[1]


def _nested(model, x, n):
    def body(carry):
        i, x, model = carry
        return i + 1, model(_while(model, x, n)), model

    return nnx.while_loop(lambda carry: carry[0] < n, body, (0, x, model))[1]


def _fori(model, x, n):
    def body(_, carry):
        x, model = carry
        return model(x), model

    return nnx.fori_loop(0, n, body, (x, model))[0]


def _scan(model, x, _):
    @nnx.scan(in_axes=(None, nnx.Carry), out_axes=nnx.Carry, length=3)
    def thrice(model, x):
        return model(x)

    return thrice(model, x)


def _cond_fori(model, x, n):
    return nnx.cond(n < 2, lambda m, x: _fori(m, x, 3), lambda _, x: x, model, x)


def _cond_while(model, x, n):
    return nnx.cond(n < 2, lambda m, x: _while(m, x, 3), lambda _, x: x, model, x)


def _closure(model, x, n):
    """Close over the module instead of carrying it."""
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, model(c[1])), (0, x))[1]


def _restore(model, x, n):
    """Restore the state after the loop, and drop the batched state that the loop returns."""
    backup = nnx.state(model)
    x = _while(model, x, n)
    nnx.update(model, backup)
    return x


def _functional(model, x, n):
    """Split outside and merge inside, so that the loop carries only arrays."""
    graph, state = nnx.split(model)
    body = lambda c: (c[0] + 1, nnx.merge(graph, state)(c[1]))  # noqa: E731 - as in _closure
    return lax.while_loop(lambda c: c[0] < n, body, (0, x))[1]


LOOPS = {
    "while": (_while, "while"),
    "nested": (_nested, "nested"),
    "fori": (_fori, "while"),
    "fori_static": (lambda model, x, _: _fori(model, x, 3), "static"),
    "scan": (_scan, "static"),
    "cond_fori": (_cond_fori, "cond"),
    "cond_while": (_cond_while, "cond"),
    "closure": (_closure, "while"),
    "restore": (_restore, "while"),
    "functional": (_functional, "while"),
}


def _batched(loop):
    def fn(kernel, xs, ns):
        return nnx.vmap(LOOPS[loop][0], in_axes=(None, 0, 0))(Layer(kernel), xs, ns)

    return fn


WHILE_BATCHES_MODULE = deviation(
    "jax<0.6",
    params=("while", "nested", "fori", "cond_while"),
    error="ValueError",
    match="at vmap out_axes.* output was batched",
    reason="the loop batches the parameters of the module, and vmap refuses to write them back",
    issue="google/flax#4700",
)
FORI_IN_COND_BATCHES_MODULE = deviation(
    "jax<0.6.1",
    params=("cond_fori",),
    error="ValueError",
    match="at vmap out_axes.* output was batched",
    reason="the loop batches the parameters of the module, and vmap refuses to write them back",
    issue="google/flax#4709",
)
FLAX_IMPORT_FAILS = deviation(
    "jax==0.11.2",
    packages={"flax": "<0.12.10"},
    error="AttributeError",
    match="has no attribute 'HiPrimitive'",
    reason="the Flax release current at the time fails to import on jax 0.11.2",
    issue="google/flax#5596",
)


@program(
    source="google/flax#4700",
    params={
        "while": {"loop": "while"},
        "nested": {"loop": "nested"},
        "fori": {"loop": "fori"},
        "cond_fori": {"loop": "cond_fori"},
        "cond_while": {"loop": "cond_while"},
    },
    deviations=[WHILE_BATCHES_MODULE, FORI_IN_COND_BATCHES_MODULE, FLAX_IMPORT_FAILS],
)
def module_in_the_carry(env, loop):
    """A module in the carry of an NNX loop is shared by all examples of `nnx.vmap`."""
    return Program(
        _batched(loop),
        args=data(env),
        reference=lambda kernel, xs, ns: compute_expected(kernel, xs, ns, LOOPS[loop][1]),
    )


@program(source="google/flax#4700", deviations=[FLAX_IMPORT_FAILS])
def module_in_a_loop_of_three(env):
    """A module in the carry of a loop of known length stays unbatched: there is no predicate."""
    loops = ("fori_static", "scan")
    return Program(
        lambda *args: {loop: _batched(loop)(*args) for loop in loops},
        args=data(env),
        reference=lambda *args: dict.fromkeys(loops, compute_expected(*args, "static")),
    )


@program(
    source="google/flax#4700",
    same_as=("jit", "eager", "aot", "vmap_of_one"),
    deviations=[FLAX_IMPORT_FAILS],
)
def workaround(env):
    """Three workarounds for flax#4700 on releases before 0.6.0 compute the right values."""
    loops = ("closure", "restore", "functional")
    return Program(
        lambda *args: {loop: _batched(loop)(*args) for loop in loops},
        args=data(env),
        reference=lambda *args: dict.fromkeys(loops, compute_expected(*args, "while")),
    )


RESTORED_TOO_LATE = deviation(
    "jax<0.6",
    params=("restore",),
    outcome="ok",
    reason="the loop batches its whole carry, and the state is restored after it",
    issue="google/flax#4700",
)


@probe(
    source="google/flax#4700",
    params={
        "closure": {"loop": "closure"},
        "restore": {"loop": "restore"},
        "functional": {"loop": "functional"},
    },
    deviations=[RESTORED_TOO_LATE, FLAX_IMPORT_FAILS],
)
def copies_inside_the_loop(env, loop):
    """Some workarounds keep a single copy of the parameters inside the loop.

    Restoring the state avoids the error, and the loop keeps a copy of the model for each example.
    Closing over the module, or over its state, keeps one copy.
    """
    return Observed(BATCHED_KERNEL in str(jax.make_jaxpr(_batched(loop))(*data(env))), False)


WHILE_BATCHES_STATE = deviation(
    "jax<0.6",
    error="ValueError",
    match="at vmap out_axes.* output was batched",
    reason="the loop batches the parameters of the module, and vmap refuses to write them back",
    issue="google/flax#4700",
)


@program(source="google/flax#4700", deviations=[WHILE_BATCHES_STATE, FLAX_IMPORT_FAILS])
def state_of_each_example(env):
    """A counter for each example with shared parameters counts the trips of its example.

    `nnx.StateAxes` splits one module: parameters unbatched, counters batched. A loop that masked
    only x would count the trips of the longest example for all.
    """
    axes = nnx.StateAxes({nnx.Param: None, Steps: 0})

    def fn(kernel, xs, ns):
        model = Counting(kernel, jnp.zeros(len(ns), jnp.int32))
        out = nnx.vmap(_while, in_axes=(axes, 0, 0))(model, xs, ns)
        return out, model.steps.value

    return Program(
        fn,
        args=data(env),
        reference=lambda kernel, xs, ns: (compute_expected(kernel, xs, ns, "while"), ns),
    )


@program(source="google/flax#4700", deviations=[FLAX_IMPORT_FAILS])
def written_module_is_batched(env):
    """Examples cannot share a module that each of them writes: nnx.vmap must raise an error."""

    def fn(kernel, xs, ns):
        model = Counting(kernel, jnp.zeros((), jnp.int32))
        return nnx.vmap(_while, in_axes=(None, 0, 0))(model, xs, ns)

    expected = raises("ValueError", match="at vmap out_axes.* output was batched")
    return Program(fn, args=data(env), reference=expected)


GRADIENT_OF_BATCHED_MODULE = deviation(
    "jax<0.6.1",
    error="ValueError",
    match="at vmap out_axes.* output was batched",
    reason="the loop batches the parameters of the module, and vmap refuses to write them back",
    issue="google/flax#4709",
)


@program(source="google/flax#4709", deviations=[GRADIENT_OF_BATCHED_MODULE, FLAX_IMPORT_FAILS])
def gradient(env):
    """`nnx.grad` through vmap, cond and fori_loop equals `jax.grad` through plain unrolled jax."""

    def loss(model, xs, ns):
        return nnx.vmap(_cond_fori, in_axes=(None, 0, 0))(model, xs, ns).sum()

    def fn(kernel, xs, ns):
        (slope,) = jax.tree_util.tree_leaves(nnx.grad(loss)(Layer(kernel), xs, ns))
        return slope

    def unrolled(kernel, xs, ns):
        def total(kernel):
            once = lambda x: jnp.tanh(x @ kernel)  # noqa: E731 - as in the layer
            kept = [once(once(once(x))) if n < 2 else x for x, n in zip(xs, ns, strict=True)]
            return sum(x.sum() for x in kept)

        return jax.jit(jax.grad(total))(kernel)

    return Program(fn, args=data(env), reference=unrolled)
