"""Mapped axes: sizes that `vmap` checks and its message names, and values that stay unmapped."""

from __future__ import annotations

import jax
import numpy as np
from jax import lax

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import floats

SIZE_IGNORED = deviation(
    "jax<0.10",
    outcome="ok",
    reason="`axis_size` was not compared with the sizes of the arguments",
    issue="jax-ml/jax@b12e491f0bba",
)


@probe(source="jax-ml/jax@b12e491f0bba", deviations=[SIZE_IGNORED])
def size_that_does_not_fit(env):
    """`axis_size=2` for arguments with 4 rows is refused, with and without a collective."""
    x = floats(1, 2, 3, 4)
    plain = jax.vmap(lambda x: 2 * x, axis_size=2)
    mean = jax.vmap(lambda x: lax.pmean(x, "i"), axis_size=2, axis_name="i")
    observed = {
        "plain": refusal(lambda: plain(x), "inconsistent sizes"),
        "pmean": refusal(lambda: mean(x), "inconsistent sizes"),
    }
    return Observed(observed, dict.fromkeys(observed, "ValueError: inconsistent sizes"))


def add(x, y, z):
    """Return the sum of three arrays."""
    return x + y + z


CALLS = {
    "position": (lambda f: f(np.ones(2), np.ones(1), np.ones(2)), "argument y"),
    "keyword": (lambda f: f(np.ones(2), z=np.ones(1), y=np.ones(2)), "kwargs['z']"),
}
OTHER_ARGUMENT_NAMED = deviation(
    "jax<0.4.36",
    params=["keyword"],
    outcome="ok",
    reason="keyword arguments were taken for positional ones in the order of the call",
    issue="jax-ml/jax#24406",
)


@probe(source="jax-ml/jax#24406", params=[*CALLS], deviations=[OTHER_ARGUMENT_NAMED])
def argument_of_another_size(env, name):
    """The message about inconsistent sizes names the argument whose size differs."""
    call, expected = CALLS[name]
    words = ("axis 0 of argument y of", "axis 0 of kwargs['z'] of")
    observed = refusal(lambda: call(jax.vmap(add)), *words)
    return Observed(observed, f"ValueError: axis 0 of {expected} of")


NO_RULE_FOR_A_BARRIER = deviation(
    "jax<0.4.38",
    error="NotImplementedError",
    match="Batching rule for 'optimization_barrier' not implemented",
    reason="a barrier had no batching rule",
    issue="jax-ml/jax@944d822ce644",
)


@probe(source="jax-ml/jax@944d822ce644", releases="jax>=0.4.33", deviations=[NO_RULE_FOR_A_BARRIER])
def barrier_in_lanes(env):
    """`lax.optimization_barrier` under vmap returns its operands, mapped as they are."""
    x, y = floats(1, 2), np.arange(6, dtype=np.float32).reshape(3, 2)
    f = jax.vmap(lambda *pair: lax.optimization_barrier(pair), (0, 1), (0, 1))
    return Observed(jax.jit(f)(x, y), (x, y))


SCAN_MAPS_ITS_CARRY = deviation(
    "jax<0.6.1",
    error="ValueError",
    match="out_axes",
    reason="a carry that a scan only reads was mapped in a branch with a mapped predicate",
    issue="google/flax#4709",
)


@probe(source="google/flax#4709", deviations=[SCAN_MAPS_ITS_CARRY])
def scan_that_only_reads(env):
    """A carry that a scan returns unchanged stays unmapped, so `out_axes=None` accepts it."""

    def read(_, y):
        return lax.scan(lambda y, _: (y, None), y, length=2)[0]

    def f(x, y):
        return lax.cond(x < 0, read, read, x, y)

    mapped = jax.vmap(f, (0, None), None)
    return Observed(jax.jit(mapped)(floats(-1, 1), np.float32(7)), np.float64(7))


KEYWORDS_NOT_NAMED = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="the message gave two numbers and not the cause",
    issue="jax-ml/jax#7465",
)


@probe(source="jax-ml/jax#7465", deviations=[KEYWORDS_NOT_NAMED])
def axes_for_keywords(env):
    """The message about `in_axes` with an entry for a keyword argument names the keyword."""
    f = jax.vmap(lambda x, y: x + y, in_axes=(0, None))
    observed = refusal(lambda: f(floats(1, 2), y=np.float32(3)), "keyword arguments ['y']")
    return Observed(observed, "ValueError: keyword arguments ['y']")


NUMBERS_OF_ROWS_WRAPPED = deviation(
    "jax<0.4.35",
    outcome="ok",
    reason="the number of the row had the dtype of the index, in which it overflowed",
    issue="jax-ml/jax@ed5ba633d4db",
)


@probe(source="jax-ml/jax@ed5ba633d4db", platforms=["cpu"], deviations=[NUMBERS_OF_ROWS_WRAPPED])
def writes_to_many_rows(env):
    """Under `vmap` over 300 rows, writes at an index of 8 bits reach every row."""
    x, numbers = np.zeros((300, 4), np.float32), lax.ScatterDimensionNumbers((), (0,), (0,))
    result = {
        "update": jax.vmap(lambda row, i: lax.dynamic_update_slice(row, floats(1), (i,)))(
            x, np.full(300, 2, np.uint8)
        ),
        "scatter": jax.vmap(lambda row, i: lax.scatter_add(row, i[None], np.float32(1), numbers))(
            x, np.full(300, 2, np.int8)
        ),
    }
    rows = {name: y[:, 2] for name, y in result.items()}
    return Observed(rows, dict.fromkeys(rows, np.ones(300, np.float32)))


LANES = {
    "call": jax.vmap,
    "jit": lambda f: jax.jit(jax.vmap(f)),
    "gradient": lambda f: jax.vmap(jax.grad(f)),
}
UNMAPPED_OPERANDS_REFUSED = deviation(
    "jax>=0.9.1",
    error="NotImplementedError",
    match="vmap over any dim but 0",
    reason="the batching rule of ragged_dot refuses operands of which none is mapped",
    issue="jax-ml/jax@fd12028fae71",
)


@probe(
    source="jax-ml/jax@fd12028fae71",
    releases="jax>=0.4.35",
    params=[*LANES],
    deviations=[UNMAPPED_OPERANDS_REFUSED],
)
def grouped_product_without_lanes(env, name):
    """Each lane is multiplied by the sum of a `ragged_dot` of arrays that have no lanes."""
    rows, weights = np.float32([[1, 2], [3, 4], [5, 6]]), np.ones((2, 2, 1), np.float32)

    def f(lane):
        return lane * lax.ragged_dot(rows, weights, np.int32([1, 2])).sum()

    expected = np.float64([21, 21]) if name == "gradient" else np.float64([21, 42])
    return Observed(LANES[name](f)(floats(1, 2)), expected)
