"""`jax.debug.print` and `jax.debug.callback`: formats, print options, order, lanes and messages."""

from __future__ import annotations

import contextlib
import io

import jax
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import floats, printed

defaults(platforms=("cpu",))

FORMATTED_WITH_TRACERS = deviation(
    "jax<0.4.33",
    error="TypeError",
    match="unsupported format string passed to DynamicJaxprTracer",
    reason="the format was tried with traced values (fixed in 0.4.32, which was withdrawn)",
    issue="jax-ml/jax#23475",
)


@probe(source="jax-ml/jax#23475", deviations=[FORMATTED_WITH_TRACERS])
def format_specification(env):
    """`jax.debug.print("{x:.2f}", x=x)` works under jit from 0.4.33."""
    return Observed(
        printed(lambda x: jax.debug.print("{x:.2f} {{}}", x=x), floats(1.25)), ["1.25 {}"]
    )


FIRST_PIECE_DECIDES = deviation(
    "jax>=0.7.2",
    outcome="ok",
    reason="a format whose first brace is escaped counts as one without fields",
    issue="jax-ml/jax@1b556f2e7444",
)


@probe(source="jax-ml/jax@1b556f2e7444", deviations=[FIRST_PIECE_DECIDES])
def escaped_brace_first(env):
    """`jax.debug.print("{{x}}: {}", x)` prints the format itself from 0.7.2 on."""
    lines = printed(lambda x: jax.debug.print("{{x}}: {}", x), floats(1.5))
    return Observed(lines, ["{x}: 1.5"])


PRINT_OPTIONS_LOST = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the options at the time of the call of the host were used",
    issue="jax-ml/jax@330606320aff",
)


@probe(source="jax-ml/jax@330606320aff", deviations=[PRINT_OPTIONS_LOST])
def print_options(env):
    """`jax.debug.print` under jit follows `np.printoptions` at tracing, from 0.5.0."""

    def f(x):
        with np.printoptions(precision=2, suppress=True):
            jax.debug.print("{}", x)

    return Observed(printed(f, floats(1.25, 1e-7)), ["[1.25 0.  ]"])


VALUES = {
    "scalar": floats(1.5),
    "bool": np.bool_(True),
    "matrix": np.zeros((2, 2), np.int32),
    "long": np.zeros(2000, np.float32),
}


@probe(source="jax-ml/jax#11928")
def values(env):
    """Values are printed as NumPy prints them, long ones abbreviated."""
    lines = [printed(lambda x: jax.debug.print("{}", x), x) for x in VALUES.values()]
    return Observed(
        dict(zip(VALUES, lines, strict=True)), {n: str(x).splitlines() for n, x in VALUES.items()}
    )


KEY_LAYOUT_MISSING = deviation(
    "jax==0.6.0",
    error="ValueError",
    match="incorrect layout",
    reason="the layout of the words of the key is missing",
    issue="jax-ml/jax#28095",
)


@probe(
    source="jax-ml/jax#11928",
    deviations=[KEY_LAYOUT_MISSING],
    records="text of a key and of a dictionary in messages",
)
def text_of_other_values(env):
    """A typed key, and a dictionary with an array, as text."""
    key = jax.random.wrap_key_data(np.array([0, 7], np.uint32))
    return {
        "key": printed(lambda k: jax.debug.print("{}", k), key),
        "dictionary": printed(lambda x: jax.debug.print("{t}", t={"a": x}), floats(1)),
        "traced in an f-string": printed(lambda x: jax.debug.print(f"{x}"), floats(1)),
    }


@probe(source="jax-ml/jax#11928")
def order(env):
    """Ordered prints keep the order of the program, in loops too."""

    def f(xs):
        for i in range(4):
            jax.debug.print("line {}", i, ordered=True)

        def step(c, x):
            jax.debug.print("step {}", x, ordered=True)
            return c + x, None

        total, _ = lax.scan(step, 0, xs)
        jax.debug.print("total {}", total, ordered=True)
        return lax.while_loop(
            lambda c: c < 3, lambda c: (jax.debug.print("while {}", c, ordered=True), c + 1)[1], 1
        )

    lines = [f"line {i}" for i in range(4)] + [f"step {i}" for i in range(3)]
    expected = [*lines, "total 3", "while 1", "while 2"]
    return Observed(printed(f, np.arange(3)), expected)


@probe(source="jax-ml/jax#11928")
def callback_in_lanes(env):
    """`jax.debug.callback` under vmap is called once for each lane, with its own value."""
    calls = []

    def lane(x, y):
        jax.debug.callback(lambda a, b: calls.append([float(a), np.shape(b), float(b[0])]), x, y)

    jax.jit(jax.vmap(lane, in_axes=(0, None)))(floats(1, 2), floats(5, 6))
    jax.effects_barrier()
    return Observed(sorted(calls), [[1.0, (2,), 5.0], [2.0, (2,), 5.0]])


@probe(source="jax-ml/jax#23475")
def messages(env):
    """Unused and missing values are refused when the function is traced."""
    observed = {
        "unused": refusal(
            lambda: printed(lambda x: jax.debug.print("{}", x, x), floats(1)), "Unused"
        ),
        "missing": refusal(lambda: printed(lambda x: jax.debug.print("{y}", x=x), floats(1)), "y"),
    }
    expected = {
        "unused": "ValueError: Unused",
        "missing": "KeyError: y",
    }
    return Observed(observed, expected)


@probe(source="jax-ml/jax@e750d7ead6b9", devices=4, releases="jax>=0.6")
def partitioned(env):
    """`partitioned=True` prints each shard; without it, the array is gathered and printed once."""
    x = jax.device_put(np.arange(4), NamedSharding(env.mesh(4, "x"), P("x")))
    whole = printed(lambda x: jax.debug.print("{}", x), x)
    parts = printed(lambda x: jax.debug.print("{}", x, partitioned=True), x)
    return Observed((whole, sorted(parts)), (["[0 1 2 3]"], ["[0]", "[1]", "[2]", "[3]"]))


NOT_CURRIED = deviation(
    "jax<0.10.1",
    error="TypeError",
    match="missing 1 required positional argument: 'callback'",
    reason="callback had to be the first argument",
    issue="jax-ml/jax@e0bfb31b15b2",
)


@probe(source="jax-ml/jax@e0bfb31b15b2", deviations=[NOT_CURRIED])
def curried_callback(env):
    """`jax.debug.callback(ordered=True)(f, x)`, with the options first, works from 0.10.1."""
    calls = []

    def f(x):
        jax.debug.callback(ordered=True)(lambda v: calls.append(float(v)), x)

    jax.jit(f)(floats(1))
    jax.effects_barrier()
    return Observed(calls, [1.0])


ELEMENTS_WERE_SHOWN = deviation(
    "jax<0.11.1",
    params=["one_mebibyte"],
    outcome="ok",
    reason="the text had elements of an array of any size",
)


@probe(
    source="jax-ml/jax#238",
    params={"less": {"columns": 262_143}, "one_mebibyte": {"columns": 262_144}},
    deviations=[ELEMENTS_WERE_SHOWN],
)
def text_of_a_large_array(env, columns):
    """`print(x)` shows only shape and dtype of an array of 1 MiB or more, from 0.11.1 on."""
    x = jax.device_put(np.zeros(columns, np.float32))
    has_elements = {"str": "0. 0. 0." in str(x), "repr": "0., 0., 0." in repr(x)}
    return Observed(has_elements, dict.fromkeys(has_elements, columns < 262_144))


TANGENT_NOT_PRINTED = deviation(
    "jax<0.6.2",
    outcome="ok",
    reason="a callback without results was dropped",
    issue="jax-ml/jax@a964f54dd1a2",
)


@probe(source="jax-ml/jax@a964f54dd1a2", deviations=[TANGENT_NOT_PRINTED])
def tangent_of_a_linearized_function(env):
    """The function that `jax.linearize` returns prints the tangents that a rule prints."""

    @jax.custom_jvp
    def f(x):
        return 3 * x

    @f.defjvp
    def _(primals, tangents):
        jax.debug.print("{}", tangents[0])
        return f(*primals), 3 * tangents[0]

    with contextlib.redirect_stdout(io.StringIO()) as stream:
        linear = jax.linearize(f, floats(1))[1]
        result = linear(floats(2))
        jax.effects_barrier()
    return Observed((stream.getvalue().split(), result), (["2.0"], floats(6)))
