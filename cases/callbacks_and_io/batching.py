"""Callbacks under vmap, grad and loops: what the host receives, how often, in which order.

Up to 0.5.3 batching of a `pure_callback` had a default (one call after the other); from 0.6.0 the
method must be specified. The host receives other shapes with each method, so the cases record the
shapes.
"""

from __future__ import annotations

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import ROW, capture_lines, expect_refusal, refusal, struct

defaults(platforms=("cpu",))

HOST_SHAPES = {
    "sequential": [[[], []]] * 3,
    "sequential_unrolled": [[[], []]] * 3,
    "expand_dims": [[[3], [1]]],
    "broadcast_all": [[[3], [3]]],
    "legacy_vectorized": [[[3], []]],
}


NO_VMAP_METHOD = deviation(
    "jax<0.4.35",
    params=("vmap_method", "sequential_unrolled"),
    error="TypeError",
    match="is not a valid JAX type",
    reason="unknown keywords are passed to the callback, as arrays",
    issue="jax-ml/jax#23881",
)
NO_SEQUENTIAL_UNROLLED = deviation(
    "jax>=0.4.35,<0.5.1",
    params=("sequential_unrolled",),
    error="ValueError",
    match="vmap_method must be on of the allowed methods",
    reason="sequential_unrolled was added in 0.5.1",
    issue="jax-ml/jax@c502332ed597",
)
METHOD_REQUIRED = deviation(
    "jax>=0.6",
    params=("unstated",),
    error="NotImplementedError",
    match="vmap is only supported .* when vmap_method is one of",
    reason="the method must be specified",
    issue="jax-ml/jax#23881",
)
VECTORIZED_REMOVED = deviation(
    "jax>=0.6,<0.10",
    params=("vectorized",),
    error="ValueError|TypeError",
    match="vectorized",
    reason="the keyword was removed, with a message",
    issue="jax-ml/jax@1b1bd071bce9",
)
VECTORIZED_PASSED_TO_CALLBACK = deviation(
    "jax>=0.10",
    params=("vectorized",),
    error="NotImplementedError",
    match="vmap is only supported .* when vmap_method is one of",
    reason="vectorized is passed to the callback, so it is vmap_method that is missing",
    issue="jax-ml/jax@a9e0f0b3f18a",
)


@probe(
    source="jax-ml/jax#23881",
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
        NO_VMAP_METHOD,
        NO_SEQUENTIAL_UNROLLED,
        METHOD_REQUIRED,
        VECTORIZED_REMOVED,
        VECTORIZED_PASSED_TO_CALLBACK,
    ],
)
def method_of_batching(env, said):
    """The batching method decides which shapes the host receives under vmap.

    One argument is batched, and the other is not. From 0.6.0 the method must be specified, and
    `vectorized=` is removed. `expand_dims` is the method for a NumPy function that broadcasts;
    `legacy_vectorized` is the former `vectorized=True`.
    """
    shapes = {method: [] for method in said}

    def add(method, a, b):
        def host(a, b):
            shapes[method].append([list(np.shape(a)), list(np.shape(b))])
            return np.asarray(a) + np.asarray(b)

        return jax.pure_callback(host, struct(()), a, b, **said[method])

    def program(a, b):
        return {m: jax.vmap(partial(add, m), in_axes=(0, None))(a, b) for m in said}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = jax.device_get(jax.jit(program)(ROW, np.float32(10)))
    expected = {"values": dict.fromkeys(said, ROW + 10), "seen": {m: HOST_SHAPES[m] for m in said}}
    return Observed({"values": values, "seen": shapes}, expected)


@probe(source="jax-ml/jax#23881", params={"plain": {"ruled": False}, "custom_jvp": {"ruled": True}})
def slope_of_a_callback(env, ruled):
    """A callback has no derivative: grad raises an error that names `custom_jvp`.

    With a rule from `custom_jvp`, grad works.
    """

    def sine(x):
        return jax.pure_callback(lambda x: np.sin(np.asarray(x)), struct(()), x)

    if not ruled:
        return Observed(
            refusal(lambda: jax.grad(sine)(0.5), "custom_jvp"), expect_refusal("ValueError")
        )
    sine_with_rule = jax.custom_jvp(sine)
    sine_with_rule.defjvp(
        lambda primals, tangents: (sine(*primals), jnp.cos(primals[0]) * tangents[0])
    )
    return Observed(jax.jit(jax.grad(sine_with_rule))(0.5), np.cos(0.5))


def record_calls(ordered):
    """Return a function of a batch that calls back for each example, and the list of its calls."""
    calls = []

    def step(x):
        return io_callback(lambda x: calls.append(float(x)), None, x, ordered=ordered)

    return jax.vmap(step), calls


@probe(
    source="jax-ml/jax#23881",
    params={"ordered": {"ordered": True}, "unordered": {"ordered": False}},
)
def io_under_vmap(env, ordered):
    """An `io_callback` under vmap is called once for each example; an ordered one is refused."""
    batched, calls = record_calls(ordered)
    if ordered:
        words = "Cannot `vmap` ordered IO callback"
        return Observed(refusal(lambda: batched(ROW), words), expect_refusal("ValueError"))
    batched(ROW)
    jax.effects_barrier()
    return Observed(sorted(calls), [0.0, 1.0, 2.0])


@probe(source="jax-ml/jax#23881")
def io_in_a_loop_of_unequal_lengths(env):
    """Under vmap, an `io_callback` in a while_loop with a batched trip count is refused.

    The trip count depends on the example. A finished example would continue to call the host, so
    jax rejects the program.
    """

    def count(n):
        def body(i):
            io_callback(lambda _: None, None, i)
            return i + 1

        return lax.while_loop(lambda i: i < n, body, 0)

    words = "effects not supported in while_loop with batched predicate"
    outcome = refusal(lambda: jax.vmap(count)(np.arange(3)), words)
    return Observed(outcome, {"error": outcome["error"], "told": True})


@probe(source="jax-ml/jax#11928")
def result_that_nobody_uses(env):
    """A pure callback whose result is unused is never called; an `io_callback` is called once."""
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


@probe(source="jax-ml/jax#11928")
def order_of_calls(env):
    """Ordered callbacks run in program order: loop by loop, and trip by trip.

    Two callbacks in one trip run in turn.
    """
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
    """Print a row, or a number, under each transformation, each line with its own prefix."""

    def with_print(word, result=lambda x: x):
        return lambda x: (jax.debug.print(word + " {}", x), result(x))[1]

    def above_one(word):
        return lambda x: lax.cond(x > 1, with_print(word), lambda x: x, x)

    jax.vmap(partial(jax.debug.print, "ordered {}", ordered=True))(row)
    return (
        jax.vmap(with_print("vmap"))(row),
        jax.grad(with_print("grad", lambda x: x**2))(three),
        jax.grad(jax.checkpoint(with_print("remat", jnp.sin)))(three),
        jax.vmap(above_one("batched cond"))(row),
        above_one("cond")(row[0]),
    )


@probe(source="jax-ml/jax#11928")
def debug_print(env):
    """`jax.debug.print` under transformations: the printed lines.

    It prints a line for each example under vmap; each line twice under remat, which computes twice;
    and under vmap of cond also a line for each example that does not take the branch.
    """
    lines = [f"{word} {x}" for word in ("vmap", "ordered", "batched cond") for x in ROW]
    lines += ["grad 3.0", "remat 3.0", "remat 3.0"]
    jitted = capture_lines(jax.jit(prints), ROW, np.float32(3))
    formatted = capture_lines(lambda x: jax.debug.print("{a:.2f} {{}}", a=x), np.float32(1.234))
    return Observed([jitted, formatted], [sorted(lines), ["1.23 {}"]])


VALUES_HAD_TO_BE_ARRAYS = deviation(
    "jax<0.4.34",
    error="TypeError",
    match="type <class 'str'> is not a valid JAX type",
    reason="debug.print required every value to be an array",
    issue="jax-ml/jax#23600",
)


@probe(source="jax-ml/jax#23600", deviations=[VALUES_HAD_TO_BE_ARRAYS])
def debug_print_of_a_string(env):
    """`jax.debug.print` accepts strings among its values from 0.4.34."""
    return Observed(
        capture_lines(jax.jit(lambda x: jax.debug.print("{} {}", "step", x)), 3), ["step 3"]
    )
