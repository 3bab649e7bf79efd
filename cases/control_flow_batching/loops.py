"""`while_loop` and `fori_loop` under vmap: finished lanes, counters and read-only carries.

A mapped predicate keeps the loop running until the last lane has finished; the body runs in all
lanes, and results of finished lanes are discarded. Carries that need not be mapped should stay
unmapped.
"""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program, raises
from conformance.kit import strategies as st
from conformance.kit.endings import refusal
from conformance.kit.equations import first, types

from ._helpers import donate, floats


@program(
    source="jax-ml/jax#485",
    given={"n": st.arrays("int32", 6, elements=st.integers(-1, 6))},
    examples=5,
    same_as=("jit", "aot"),
)
def mapped_bounds(env, n):
    """With a mapped bound, each lane of a `fori_loop` makes its own number of steps."""

    def to(low, high):
        return lax.fori_loop(low, high, lambda i, c: 2 * c + i, 1)

    def python(n):
        def run_lane(low, high):
            c = 1
            for i in range(low, high):
                c = 2 * c + i
            return c

        bounds = [(0, k) for k in n], [(k, 4) for k in n]
        return tuple(np.array([run_lane(*pair) for pair in pairs], np.int32) for pairs in bounds)

    return Program(
        jax.vmap(lambda n: (to(0, n), to(n, 4))),
        args=(n,),
        reference=python,
    )


@program(source="jax-ml/jax#7781")
def predicate_mapped_by_the_body(env):
    """The predicate may read a carry that becomes mapped only in the body.

    vmap finds the mapped carries as a fixed point.
    """

    def fn(step):
        return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + step, s[1] + 1), (0.0, 0))

    return Program(
        jax.vmap(fn),
        args=(floats(1, 2, 3, 4),),
        reference=(np.array([5.0, 6, 6, 8]), np.array([5, 3, 2, 2], np.int32)),
    )


@program(source="jax-ml/jax#485")
def lanes_that_are_done(env):
    """A body that is wrong for finished lanes, here 1/0, keeps their value and derivative."""

    def fn(n, x):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, 1 / s[1]), (0, x))[1]

    def both(n, x):
        return jax.jvp(lambda x: fn(n, x), (x,), (jnp.ones_like(x),))

    return Program(
        jax.vmap(both),
        args=(np.array([0, 1, 2], np.int32), floats(0, 4, 5)),
        reference=(np.array([0, 0.25, 5]), np.array([1, -1 / 16, 1])),
    )


@probe(
    source="jax-ml/jax#1190",
    params={"fori": {"mapped": False}, "fori_mapped_bound": {"mapped": True}},
)
def counter(env, mapped):
    """The counter of a `fori_loop` is a single number for all lanes if the bounds are unmapped."""

    def fn(n, x):
        return lax.fori_loop(0, n, lambda i, c: c + i * x, 0.0)

    n = np.array([3, 4], np.int32) if mapped else np.int32(3)
    fn = jax.vmap(fn, in_axes=(0 if mapped else None, 0))
    carry = types(first(fn, (n, floats(1, 2)), "while").outvars)[0]
    return Observed(
        {"value": jax.jit(fn)(n, floats(1, 2)), "counter": carry},
        {"value": floats(3, 12 if mapped else 6), "counter": "int32[2]" if mapped else "int32[]"},
    )


READ_ONLY_CARRIES_MAPPED = deviation(
    "jax<0.6",
    error="ValueError",
    match="out_axes",
    reason="all carries of a mapped loop were mapped, also those that the body only reads",
    issue="jax-ml/jax#27970",
)


@program(source="jax-ml/jax#27970", platforms=("cpu",), deviations=[READ_ONLY_CARRIES_MAPPED])
def carry_that_is_only_read(env):
    """A carry that the body returns unchanged stays unmapped, so `out_axes=None` accepts it."""

    def fn(n, x):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1]), (0, x))

    return Program(
        jax.vmap(fn, in_axes=(0, None), out_axes=(0, None)),
        args=(np.arange(4, dtype=np.int32), np.float32(7)),
        reference=(np.arange(4, dtype=np.int32), np.float64(7)),
    )


READ_ONLY_CARRIES_DIFFERENTIATED = deviation(
    "jax<0.6",
    error="ValueError",
    match="Reverse-mode differentiation does not work for lax.while_loop",
    reason="all carries of a loop were differentiated, also those that the body only reads",
    issue="jax-ml/jax#27970",
)


@probe(source="jax-ml/jax#27970", deviations=[READ_ONLY_CARRIES_DIFFERENTIATED])
def slope_of_a_carry_that_is_only_read(env):
    """Reverse mode accepts a `while_loop` that returns the differentiated carry unchanged.

    Before 0.6.0 it was a ValueError.
    """

    def fn(x):
        count, y = lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, x))
        return count * y**2

    return Observed(jax.jit(jax.grad(fn))(np.float32(2)), np.float64(12))


READ_ONLY_CARRIES_IN_LOOP = deviation(
    "jax<0.6",
    outcome="ok",
    reason="the loop carried read-only values like all others",
    issue="jax-ml/jax#27970",
)


@probe(source="jax-ml/jax#27970", deviations=[READ_ONLY_CARRIES_IN_LOOP])
def carries_in_the_jaxpr(env):
    """A read-only carry is a constant of the loop body: the `while` has one carry less."""

    def fn(x, factor):
        body = lambda s: (s[0] + 1, s[1], s[2] * s[1])  # noqa: E731 - reads best in place
        return lax.while_loop(lambda s: s[0] < 3, body, (0, factor, x))

    args = (np.float32(1), np.float32(2))
    return Observed(
        {"value": fn(*args), "carries": types(first(fn, args, "while").outvars)},
        {"value": (np.int32(3), np.float32(2), np.float32(8)), "carries": ["int32[]", "float32[]"]},
    )


@program(
    source="jax-ml/jax#20726",
    platforms=("cpu",),
    params={"batched": {"axis": 0}, "shared": {"axis": None}},
)
def io_in_the_body(env, axis):
    """Under vmap, `io_callback` in a loop is refused if lanes can end at different steps.

    It is kept if all lanes end together.
    """
    from jax.experimental import io_callback  # noqa: PLC0415 - as users import it

    def body(state):
        io_callback(lambda _: None, None, state[1])
        return state[0] + 1, 2 * state[1]

    def fn(n, x):
        return lax.while_loop(lambda s: s[0] < n, body, (0, x))[1]

    expected_error = raises(
        "Exception", match="IO effects not supported in while_loop with batched"
    )
    return Program(
        jax.vmap(fn, in_axes=(axis, 0)),
        args=(np.array([1, 2], np.int32) if axis == 0 else np.int32(2), floats(1, 2)),
        reference=expected_error if axis == 0 else np.array([4.0, 8.0]),
    )


MESSAGE_WITHOUT_COMPONENT = deviation(
    "jax<0.4.33",
    error="TypeError",
    match="body_fun output and input must have (identical types|same type structure)",
    reason="the message named no component of the carry",
    issue="jax-ml/jax#22857",
)


@program(
    source="jax-ml/jax#22857",
    platforms=("cpu",),
    params={"dtype": {"case": "dtype"}, "shape": {"case": "shape"}, "tree": {"case": "tree"}},
    deviations=[MESSAGE_WITHOUT_COMPONENT],
)
def carry_that_changes(env, case):
    """A body that changes the type of its carry raises a TypeError.

    The message names the component and the difference.
    """
    body = {
        "dtype": lambda s: s.astype("int32"),
        "shape": lambda s: jnp.concatenate([s, s]),
        "tree": lambda s: (s, s),
    }[case]
    match = {"dtype": "so the dtypes do not match", "shape": "so the shapes do not match"}

    def fn(state):
        return lax.while_loop(lambda s: jnp.sum(s) < 3, body, state)

    reason = match.get(case, "so their [Pp]ython types differ")
    return Program(fn, args=(floats(0, 1),), reference=raises("TypeError", match=reason))


PYTHON_CARRY_WITHOUT_JIT = deviation(
    "jax<0.5.3",
    outcome="ok",
    reason="without jit a Python number in the carry stayed a Python number",
    issue="jax-ml/jax#27059",
)


@probe(source="jax-ml/jax#27059", deviations=[PYTHON_CARRY_WITHOUT_JIT])
def carry_without_jit(env):
    """Under `disable_jit` the body of a `while_loop` receives arrays, as it does when traced."""
    are_arrays = set()

    def body(state):
        are_arrays.add(isinstance(state, jax.Array))
        return state + 1

    with jax.disable_jit():
        last = lax.while_loop(lambda s: s < 3, body, 0)
    return Observed(
        {"value": int(last), "arrays": sorted(are_arrays)}, {"value": 3, "arrays": [True]}
    )


@program(
    source="jax-ml/jax#2956",
    platforms=("cpu",),
    params={"forward": {"mode": "forward"}, "reverse": {"mode": "reverse"}},
)
def derivative_of_a_while(env, mode):
    """A loop of unknown length has a forward-mode derivative; reverse mode is refused.

    The message states that reverse mode does not work for `while_loop`.
    """

    def fn(x):
        return lax.while_loop(lambda s: s < 100, lambda s: s * s, x)

    if mode == "forward":
        return Program(jax.jacfwd(fn), args=(np.float32(3),), reference=np.float64(8 * 3**7))
    expected_error = raises(
        "ValueError", match="Reverse-mode differentiation does not work for lax.while"
    )
    return Program(jax.grad(fn), args=(np.float32(3),), reference=expected_error)


@program(source="jax-ml/jax#2960")
def mapped_twice(env):
    """Nested vmaps over the bounds and the summands of a loop agree in both orders of nesting."""

    def fn(n, x):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + x), (0, 0.0))[1]

    bounds, summands = (0, None), (None, 0)
    bounds_inside = jax.vmap(jax.vmap(fn, bounds), summands)
    bounds_outside = jax.vmap(jax.vmap(fn, summands), bounds)
    product = np.outer(np.arange(3), [1.5, 2.5])
    return Program(
        lambda n, x: (bounds_inside(n, x), bounds_outside(n, x)),
        args=(np.arange(3, dtype=np.int32), floats(1.5, 2.5)),
        reference=(product.T, product),
    )


@probe(source="jax-ml/jax#4896")
def weak_carry(env):
    """A carry that starts as a Python number takes the dtype that the body gives it, not int32."""

    def loops(dtype):
        step = np.array(2, dtype)
        fori = lax.fori_loop(0, 3, lambda _, c: c + step, 1)
        return fori, *lax.scan(lambda c, x: (c + x, c), 1, np.array([2, 2, 2], dtype))

    dtypes = ("float16", "int8")
    return Observed(
        jax.jit(lambda: {dtype: loops(dtype) for dtype in dtypes})(),
        {dtype: tuple(np.array(v, dtype) for v in (7, 7, [1, 3, 5])) for dtype in dtypes},
    )


WHOLE_ARRAY_REWRITTEN = deviation(
    "jax==0.11.1",
    outcome="ok",
    reason="an update of a few bytes rewrote the whole array",
    issue="jax-ml/jax#40101",
)


@probe(source="jax-ml/jax#40101", platforms=("cpu",), deviations=[WHOLE_ARRAY_REWRITTEN])
def step_that_writes_an_element(env):
    """On 0.11.1 a step that writes an element takes time proportional to the length of the array.

    A loop of 40,000 steps over as many elements took a tenth of a millisecond before, and a tenth
    of a second on 0.11.1. The case compares the time of a step with that for a short array, in one
    process.
    """

    def seconds_a_step(steps):
        fill = jax.jit(lambda x: lax.fori_loop(0, steps, lambda i, x: x.at[i].set(1.0), x))
        x = fill(np.zeros(steps, np.float32))
        starts = [time.perf_counter()]
        for _ in range(4):
            fill(x).block_until_ready()
            starts.append(time.perf_counter())
        return np.diff(starts).min() / steps

    # If a step takes time proportional to the array, the ratio is about 40; otherwise about 1.
    as_fast = bool(seconds_a_step(40_000) < 8 * seconds_a_step(1_000))
    return Observed({"as fast": as_fast}, reference={"as fast": True})


COMPILER_CRASHED = deviation(
    "jax<0.8.1",
    outcome="crashed",
    reason="a segmentation fault during compilation",
    issue="jax-ml/jax#33348",
)


@probe(source="jax-ml/jax#33348", platforms=("cpu",), deviations=[COMPILER_CRASHED])
def idle_loop_in_a_loop(env):
    """A loop whose body runs another loop and returns constants can be compiled.

    Up to 0.8.0 it ended the process.
    """
    zeros = np.zeros(2, np.int32)

    def body(x):
        lax.fori_loop(0, 3, lambda _, state: state, 0)
        return jnp.zeros_like(x)

    def loop():
        return lax.while_loop(lambda x: jnp.any(x != zeros), body, jnp.array([0, 0]))

    return Observed(jax.jit(loop)(), zeros)


class Node:
    """Two numbers, with auxiliary data that differ between flattening with and without keys."""

    def __init__(self, x, y):
        self.x, self.y = x, y


jax.tree_util.register_pytree_with_keys(
    Node,
    lambda node: ((("x", node.x), ("y", node.y)), "with keys"),
    lambda _, children: Node(*children),
    lambda node: ((node.x, node.y), "without keys"),
)


NO_DIFFERENCE_TO_REPORT = deviation(
    "jax==0.4.36",
    error="IndexError",
    match="list index out of range",
    reason="the carry is compared with and without keys, and no difference was found to report",
    issue="jax-ml/jax#25355",
)


@probe(source="jax-ml/jax#25355", platforms=("cpu",), deviations=[NO_DIFFERENCE_TO_REPORT])
def node_of_two_kinds_of_data(env):
    """A carry whose auxiliary data differ with and without keys is an IndexError only on 0.4.36."""
    last = lax.while_loop(lambda n: n.x > 0, lambda n: Node(n.x - 1, n.y * 2), Node(3.0, 1.0))
    return Observed([float(last.x), float(last.y)], [0.0, 8.0])


KEPT_AS_IT_WAS = {
    "while_loop": lambda kept: lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, kept)
    )[1],
    "fori_loop": lambda kept: lax.fori_loop(0, 3, lambda i, s: (s[0] + i, s[1]), (0, kept))[1],
    "scan": lambda kept: lax.scan(lambda s, x: (s, x), kept, floats(1, 2))[0],
}
WHILE_RETURNS_ITS_ARGUMENT = deviation(
    "jax>=0.6",
    params=["while_loop"],
    outcome="ok",
    reason="a carry that the body returns unchanged is a constant, and the loop returns the object",
    issue="jax-ml/jax@b3f49e42d9d6",
)
SCAN_RETURNS_ITS_ARGUMENT = deviation(
    "jax>=0.6.1",
    params=["fori_loop", "scan"],
    outcome="ok",
    reason="a carry that the body returns unchanged is a constant, and the loop returns the object",
    issue="jax-ml/jax@672ee47b0f91",
)


@probe(
    source="jax-ml/jax@b3f49e42d9d6",
    params=[*KEPT_AS_IT_WAS],
    deviations=[WHILE_RETURNS_ITS_ARGUMENT, SCAN_RETURNS_ITS_ARGUMENT],
)
def carry_of_numpy_that_is_kept(env, name):
    """Outside of jit, a loop returns arrays of JAX, also for a carry that no step changes.

    From 0.6.0 `while_loop`, and from 0.6.1 `scan` and `fori_loop`, return the very object that
    they got: a Python number or a NumPy array, of 64 bits too, whose methods are not those of
    JAX, and that changes if the caller changes the argument.
    """
    loop = KEPT_AS_IT_WAS[name]
    written = np.ones(2, np.float32)
    kept = loop(written)
    written[0] = 7
    observed = {
        "number is an array": isinstance(loop(1.5), jax.Array),
        "NumPy array is an array": isinstance(kept, jax.Array),
        "after a write to the argument": float(kept[0]),
        "dtype of float64": str(np.asarray(loop(np.ones(2))).dtype),
    }
    return Observed(
        observed,
        {
            "number is an array": True,
            "NumPy array is an array": True,
            "after a write to the argument": 1.0,
            "dtype of float64": "float32",
        },
    )


@probe(
    source="jax-ml/jax@b3f49e42d9d6",
    params=[*KEPT_AS_IT_WAS],
    deviations=[WHILE_RETURNS_ITS_ARGUMENT, SCAN_RETURNS_ITS_ARGUMENT],
)
def argument_of_a_donated_carry(env, name):
    """Outside of jit, to donate a carry that a loop returned leaves the argument of the loop.

    From 0.6.0 (`while_loop`) and 0.6.1 (`scan`, `fori_loop`) the loop returns its argument itself
    if no step changes it, so that the donation deletes the argument.
    """
    start = jax.device_put(floats(1, 2))
    kept = KEPT_AS_IT_WAS[name](start)
    donate(kept)
    return Observed({"deleted": start.is_deleted()}, {"deleted": False})


UNROLL_OF_A_TRACED_BOUND = deviation(
    "jax<0.6",
    params=["false", "one"],
    outcome="ok",
    reason="every `unroll` other than None was refused for a traced bound",
    issue="jax-ml/jax@7e2148b80043",
)


@probe(
    source="jax-ml/jax@7e2148b80043",
    params={"false": {"unroll": False}, "one": {"unroll": 1}, "two": {"unroll": 2}},
    deviations=[UNROLL_OF_A_TRACED_BOUND],
)
def unroll_with_a_traced_bound(env, unroll):
    """A traced bound of a `fori_loop` agrees with an `unroll` that asks for none, not with 2."""

    def count(n):
        return lax.fori_loop(0, n, lambda i, c: c + i, 0, unroll=unroll)

    observed = refusal(lambda: jax.jit(count)(np.int32(5)), "statically known")
    return Observed(observed, "ran" if unroll != 2 else "ValueError: statically known")


def scan_through(xs, **options):
    """Return the inputs of a scan, as its outputs."""
    return lax.scan(lambda c, x: (c + x, x), np.float32(0), xs, **options)[1]


HANDED_THROUGH = {
    "scan": scan_through,
    "reversed_scan": lambda xs: scan_through(xs, reverse=True),
    "map": lambda xs: lax.map(lambda x: x, xs),
}
SCAN_RETURNS_ITS_SEQUENCE = deviation(
    "jax>=0.6.2",
    outcome="ok",
    reason="an output that is the input of each step is forwarded, not stacked again",
    issue="jax-ml/jax@770eff03dfbc",
)


@probe(
    source="jax-ml/jax@770eff03dfbc",
    params=[*HANDED_THROUGH],
    deviations=[SCAN_RETURNS_ITS_SEQUENCE],
)
def sequence_of_a_donated_output(env, name):
    """Outside of jit, to donate an output of a scan leaves the sequence that it reads.

    From 0.6.2 an output that is the input of each step is the sequence itself, so that the
    donation deletes it.
    """
    xs = jax.device_put(floats(1, 2))
    kept = HANDED_THROUGH[name](xs)
    donate(kept)
    return Observed({"deleted": xs.is_deleted()}, {"deleted": False})
