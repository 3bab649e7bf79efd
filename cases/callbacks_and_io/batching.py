"""Callbacks under vmap, grad and loops: what the host is handed, how often, in which order.

How a `pure_callback` is batched was a default until 0.5.3 (one call after the other) and has to
be said since 0.6.0. The methods differ in what the host sees, so the cases record the shapes.
"""

from __future__ import annotations

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback

from conformance.kit import Observed, deviation, probe

from ._helpers import ROW, printed, refusal, refused, struct

SEEN = {
    "sequential": [[[], []]] * 3,
    "sequential_unrolled": [[[], []]] * 3,
    "expand_dims": [[[3], [1]]],
    "broadcast_all": [[[3], [3]]],
    "legacy_vectorized": [[[3], []]],
}


@probe(
    source="jax-ml/jax#23881",
    platforms=("cpu",),
    params={
        "unstated": {"seen": "sequential"},
        "vectorized": {"seen": "legacy_vectorized", "keywords": {"vectorized": True}},
        "sequential": {"seen": "sequential", "keywords": {"vmap_method": "sequential"}},
        "sequential_unrolled": {
            "seen": "sequential_unrolled",
            "keywords": {"vmap_method": "sequential_unrolled"},
        },
        "expand_dims": {"seen": "expand_dims", "keywords": {"vmap_method": "expand_dims"}},
        "broadcast_all": {"seen": "broadcast_all", "keywords": {"vmap_method": "broadcast_all"}},
        "legacy_vectorized": {
            "seen": "legacy_vectorized",
            "keywords": {"vmap_method": "legacy_vectorized"},
        },
    },
    deviations=[
        deviation(
            "jax<0.4.35",
            params=(
                "sequential",
                "expand_dims",
                "broadcast_all",
                "legacy_vectorized",
                "sequential_unrolled",
            ),
            error="TypeError",
            match="is not a valid JAX type",
            reason="unknown keywords are handed to the callback, as arrays",
            issue="jax-ml/jax#23881",
        ),
        deviation(
            "jax>=0.4.35,<0.5.1",
            params=("sequential_unrolled",),
            error="ValueError",
            match="vmap_method must be on of the allowed methods",
            reason="it came with 0.5.1",
            issue="jax-ml/jax@c502332ed597",
        ),
        deviation(
            "jax>=0.6",
            params=("unstated",),
            error="NotImplementedError",
            match="vmap is only supported .* when vmap_method is one of",
            reason="the method must be said",
            issue="jax-ml/jax#23881",
        ),
        deviation(
            "jax>=0.6,<0.10",
            params=("vectorized",),
            error="ValueError|TypeError",
            match="vectorized",
            reason="removed, with a message",
            issue="jax-ml/jax@1b1bd071bce9",
        ),
        deviation(
            "jax>=0.10",
            params=("vectorized",),
            error="NotImplementedError",
            match="vmap is only supported .* when vmap_method is one of",
            reason="taken for an argument of the callback, so that the method is what is missing",
            issue="jax-ml/jax@a9e0f0b3f18a",
        ),
    ],
)
def method_of_batching(env, seen, keywords=None):
    """A batched and an unbatched argument under vmap: the shapes that the host sees.

    From 0.6.0 the method must be said, and `vectorized=` is gone. `expand_dims` is what a NumPy
    function that broadcasts wants; `legacy_vectorized` is what `vectorized=True` was.
    """
    shapes = []

    def host(a, b):
        shapes.append([list(np.shape(a)), list(np.shape(b))])
        return np.asarray(a + b, np.float32)

    def add(a, b):
        return jax.pure_callback(host, struct(()), a, b, **(keywords or {}))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = jax.jit(jax.vmap(add, in_axes=(0, None)))(ROW, np.float32(10))
    value = np.asarray(value)
    return Observed({"value": value, "seen": shapes}, {"value": ROW + 10, "seen": SEEN[seen]})


@probe(
    source="jax-ml/jax#23881",
    platforms=("cpu",),
    params={"plain": {"ruled": False}, "custom_jvp": {"ruled": True}},
)
def slope_of_a_callback(env, ruled):
    """A callback has no derivative: grad says so, and works once `custom_jvp` gives one."""

    def sine(x):
        return jax.pure_callback(lambda x: np.sin(np.asarray(x)), struct(()), x)

    if not ruled:
        return Observed(refusal(lambda: jax.grad(sine)(0.5), "custom_jvp"), refused("ValueError"))
    known = jax.custom_jvp(sine)
    known.defjvp(lambda primals, tangents: (sine(*primals), jnp.cos(primals[0]) * tangents[0]))
    return Observed(jax.grad(known)(0.5), np.cos(0.5))


def counted(ordered):
    """Return a loop over examples, each with a callback in it, and what it was called with."""
    calls = []

    def step(x):
        return io_callback(lambda x: calls.append(float(x)), None, x, ordered=ordered)

    return jax.vmap(step), calls


@probe(
    source="jax-ml/jax#23881",
    platforms=("cpu",),
    params={"ordered": {"ordered": True}, "unordered": {"ordered": False}},
)
def io_under_vmap(env, ordered):
    """An `io_callback` under vmap: one call for each example, and refused if it is ordered."""
    mapped, calls = counted(ordered)
    if ordered:
        told = "Cannot `vmap` ordered IO callback"
        return Observed(refusal(lambda: mapped(ROW), told), refused("ValueError"))
    mapped(ROW)
    jax.effects_barrier()
    return Observed(sorted(calls), [0.0, 1.0, 2.0])


@probe(source="jax-ml/jax#23881", platforms=("cpu",))
def io_in_a_loop_of_unequal_lengths(env):
    """An `io_callback` in a while_loop whose trip count depends on the example: refused by vmap.

    A finished example would go on calling the host, so jax rejects the program.
    """

    def count(n):
        def body(i):
            io_callback(lambda _: None, None, i)
            return i + 1

        return lax.while_loop(lambda i: i < n, body, 0)

    told = "effects not supported in while_loop with batched predicate"
    ended = refusal(lambda: jax.vmap(count)(np.arange(3)), told)
    return Observed(ended, {"error": ended["error"], "told": True})


@probe(
    source="jax-ml/jax#11928",
    platforms=("cpu",),
    params={"pure": {"pure": True}, "io": {"pure": False}},
)
def result_that_nobody_uses(env, pure):
    """A pure callback whose result is dropped is never called; an `io_callback` is, once."""
    calls = []

    def host(x):
        calls.append(1)
        return np.asarray(x)

    def f(x):
        (jax.pure_callback if pure else io_callback)(host, struct((3,)), x)
        return x + 1

    value = jax.jit(f)(ROW)
    value.block_until_ready()
    jax.effects_barrier()
    return Observed([value, len(calls)], [ROW + 1, 0 if pure else 1])


@probe(
    source="jax-ml/jax#11928",
    platforms=("cpu",),
    params={
        "scan": {"loop": "scan"},
        "fori": {"loop": "fori"},
        "while": {"loop": "while"},
        "two_callbacks": {"loop": "two_callbacks"},
    },
)
def order_of_calls(env, loop):
    """Ordered callbacks come in program order, trip after trip, also two of them in turn."""
    calls = []

    def tell(i, by=1):
        io_callback(lambda i: calls.append(int(i)), None, by * i, ordered=True)
        return i + 1

    def both(i, _):
        return tell(i, -1), None if loop == "scan" else tell(i)

    run = {
        "scan": lambda: lax.scan(lambda i, _: (tell(i), None), 0, None, length=4)[0],
        "fori": lambda: lax.fori_loop(0, 4, lambda _, i: tell(i), 0),
        "while": lambda: lax.while_loop(lambda i: i < 4, tell, 0),
        "two_callbacks": lambda: lax.scan(both, 0, None, length=4)[0],
    }[loop]
    jax.jit(run)().block_until_ready()
    jax.effects_barrier()
    expected = [0, 0, -1, 1, -2, 2, -3, 3] if loop == "two_callbacks" else [0, 1, 2, 3]
    return Observed(calls, expected)


PRINTS = {
    "vmap": lambda: printed(jax.vmap(partial(jax.debug.print, "{}")), ROW),
    "ordered_vmap": lambda: printed(jax.vmap(partial(jax.debug.print, "{}", ordered=True)), ROW),
    "grad": lambda: printed(jax.grad(lambda x: (jax.debug.print("{}", x), x**2)[1]), 3.0),
    "remat": lambda: printed(
        jax.grad(jax.checkpoint(lambda x: (jax.debug.print("{}", x), jnp.sin(x))[1])), 3.0
    ),
    "cond_of_vmap": lambda: printed(
        jax.vmap(lambda x: lax.cond(x > 1, lambda x: jax.debug.print("{}", x), lambda _: None, x)),
        ROW,
    ),
    "cond": lambda: printed(
        jax.jit(lambda x: lax.cond(x > 1, lambda x: jax.debug.print("{}", x), lambda _: None, x)),
        0.0,
    ),
    "format": lambda: printed(lambda x: jax.debug.print("{a:.2f} {{}}", a=x), np.float32(1.234)),
    "string": lambda: printed(jax.jit(lambda x: jax.debug.print("{} {}", "step", x)), 3),
}
LINES = {
    "vmap": ["0.0", "1.0", "2.0"],
    "ordered_vmap": ["0.0", "1.0", "2.0"],
    "grad": ["3.0"],
    "remat": ["3.0", "3.0"],
    "cond_of_vmap": ["0.0", "1.0", "2.0"],
    "cond": [],
    "format": ["1.23 {}"],
    "string": ["step 3"],
}


@probe(
    source="jax-ml/jax#11928",
    platforms=("cpu",),
    params={
        "vmap": {"under": "vmap"},
        "ordered_vmap": {"under": "ordered_vmap"},
        "grad": {"under": "grad"},
        "remat": {"under": "remat"},
        "cond": {"under": "cond"},
        "cond_of_vmap": {"under": "cond_of_vmap"},
        "format": {"under": "format"},
        "string": {"under": "string"},
    },
    deviations=[
        deviation(
            "jax<0.4.34",
            params=("string",),
            error="TypeError",
            match="type <class 'str'> is not a valid JAX type",
            reason="every value had to be an array",
            issue="jax-ml/jax#23600",
        ),
    ],
)
def debug_print(env, under):
    """What `jax.debug.print` prints under transformations.

    A line for each example under vmap; twice under remat, which computes twice; and under vmap of
    cond also for the examples that do not take the branch. Strings among the values may be
    given from 0.4.34 on.
    """
    return Observed({"lines": str(PRINTS[under]())}, {"lines": str(LINES[under])})
