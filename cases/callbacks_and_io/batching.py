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
        "unstated": {"said": {"sequential": {}}},
        "vectorized": {"said": {"legacy_vectorized": {"vectorized": True}}},
        "vmap_method": {
            "said": {
                "sequential": {"vmap_method": "sequential"},
                "expand_dims": {"vmap_method": "expand_dims"},
                "broadcast_all": {"vmap_method": "broadcast_all"},
                "legacy_vectorized": {"vmap_method": "legacy_vectorized"},
            }
        },
        "sequential_unrolled": {
            "said": {"sequential_unrolled": {"vmap_method": "sequential_unrolled"}}
        },
    },
    deviations=[
        deviation(
            "jax<0.4.35",
            params=("vmap_method", "sequential_unrolled"),
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
def method_of_batching(env, said):
    """A batched and an unbatched argument under vmap: the shapes that the host sees.

    From 0.6.0 the method must be said, and `vectorized=` is gone. `expand_dims` is what a NumPy
    function that broadcasts wants; `legacy_vectorized` is what `vectorized=True` was.
    """
    seen = {method: [] for method in said}

    def add(method, a, b):
        def host(a, b):
            seen[method].append([list(np.shape(a)), list(np.shape(b))])
            return np.asarray(a) + np.asarray(b)

        return jax.pure_callback(host, struct(()), a, b, **said[method])

    def program(a, b):
        return {m: jax.vmap(partial(add, m), in_axes=(0, None))(a, b) for m in said}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = jax.device_get(jax.jit(program)(ROW, np.float32(10)))
    expected = {"values": dict.fromkeys(said, ROW + 10), "seen": {m: SEEN[m] for m in said}}
    return Observed({"values": values, "seen": seen}, expected)


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
    return Observed(jax.jit(jax.grad(known))(0.5), np.cos(0.5))


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


@probe(source="jax-ml/jax#11928", platforms=("cpu",))
def result_that_nobody_uses(env):
    """A pure callback whose result is dropped is never called; an `io_callback` is, once."""
    calls = []

    def host(kind, x):
        calls.append(kind)
        return np.asarray(x)

    def f(x):
        jax.pure_callback(partial(host, "pure"), struct((3,)), x)
        io_callback(partial(host, "io"), struct((3,)), x)
        return x + 1

    value = jax.jit(f)(ROW).block_until_ready()
    jax.effects_barrier()
    return Observed([value, calls], [ROW + 1, ["io"]])


@probe(source="jax-ml/jax#11928", platforms=("cpu",))
def order_of_calls(env):
    """Ordered callbacks come in program order: loop by loop, trip by trip, two of them in turn."""
    calls = []

    def tell(i, by=1):
        io_callback(lambda i: calls.append(int(i)), None, by * i, ordered=True)
        return i + 1

    def program():
        start, _ = lax.scan(lambda i, _: (tell(i), None), 0, None, length=4)
        start = lax.fori_loop(0, 4, lambda _, i: tell(i), start)
        start = lax.while_loop(lambda i: i < 12, tell, start)
        return lax.scan(lambda i, _: (tell(i, -1), tell(i)), start, None, length=4)

    jax.block_until_ready(jax.jit(program)())
    jax.effects_barrier()
    return Observed(calls, [*range(12), -12, 12, -13, 13, -14, 14, -15, 15])


def prints(row, three):
    """Print one row, or one number, under each transformation, a word of its own before."""

    def shown(word, result=lambda x: x):
        return lambda x: (jax.debug.print(word + " {}", x), result(x))[1]

    def above_one(word):
        return lambda x: lax.cond(x > 1, shown(word), lambda x: x, x)

    jax.vmap(partial(jax.debug.print, "ordered {}", ordered=True))(row)
    return (
        jax.vmap(shown("vmap"))(row),
        jax.grad(shown("grad", lambda x: x**2))(three),
        jax.grad(jax.checkpoint(shown("remat", jnp.sin)))(three),
        jax.vmap(above_one("batched cond"))(row),
        above_one("cond")(row[0]),
    )


@probe(source="jax-ml/jax#11928", platforms=("cpu",))
def debug_print(env):
    """What `jax.debug.print` prints under transformations.

    A line for each example under vmap; twice under remat, which computes twice; and under vmap of
    cond also for the examples that do not take the branch.
    """
    lines = [f"{word} {x}" for word in ("vmap", "ordered", "batched cond") for x in ROW]
    lines += ["grad 3.0", "remat 3.0", "remat 3.0"]
    jitted = printed(jax.jit(prints), ROW, np.float32(3))
    formatted = printed(lambda x: jax.debug.print("{a:.2f} {{}}", a=x), np.float32(1.234))
    return Observed([jitted, formatted], [sorted(lines), ["1.23 {}"]])


@probe(
    source="jax-ml/jax#23600",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.34",
            error="TypeError",
            match="type <class 'str'> is not a valid JAX type",
            reason="every value had to be an array",
            issue="jax-ml/jax#23600",
        ),
    ],
)
def debug_print_of_a_string(env):
    """Strings among the values of `jax.debug.print`, taken from 0.4.34 on."""
    return Observed(printed(jax.jit(lambda x: jax.debug.print("{} {}", "step", x)), 3), ["step 3"])
