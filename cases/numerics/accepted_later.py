"""Calls that fail on earlier releases as NumPy does not, and one that fails on later ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

from ._helpers import f32, replace_nan

defaults(platforms=("cpu",))

NOT_A_BOOLEAN_OF_NUMPY = deviation(
    "jax>=0.8.2",
    error="AssertionError",
    reason="only booleans of Python, and arrays, are recognised",
)


@probe(
    source="jax-ml/jax@b841f5b4a716",
    params={"true": {"value": True}, "false": {"value": False}},
    deviations=[NOT_A_BOOLEAN_OF_NUMPY],
)
def numpy_boolean_as_index(env, value):
    """`x[np.bool_(True)]` is a bare AssertionError from 0.8.2 on; `x[True]` works."""
    x = np.arange(3, dtype=np.float32)
    return Observed(jnp.asarray(x)[np.bool_(value)], reference=x[np.bool_(value)])


SLICES_OF_NEGATIVE_SIZE = deviation(
    "jax<0.4.38",
    error="TypeError",
    match="greater than or equal to zero",
    reason="the indices were not clipped to the length",
)
PARTS_OF_NEGATIVE_SIZE = deviation(
    "jax>=0.4.38,<0.11.1",
    error="ValueError",
    match="must be nonnegative",
    reason="the indices were not clipped to the length",
)
SPLITS = {"negative": {"at": [-1]}, "beyond": {"at": [2, 7]}}


@probe(
    source="jax-ml/jax@2c80d1af50ed",
    params=SPLITS,
    deviations=[SLICES_OF_NEGATIVE_SIZE, PARTS_OF_NEGATIVE_SIZE],
)
def split_beyond_the_ends(env, at):
    """`jnp.split` at a negative index, or beyond the end, is an error up to 0.11.0."""
    x = np.arange(5, dtype=np.float32)
    return Observed(jnp.split(x, at), reference=np.split(x, at))


LISTS_OF_SIZES = deviation(
    "jax<0.6.2",
    params=["lists"],
    error="TypeError",
    match="unhashable type: 'list'",
    reason="the lists became parameters of an equation",
    issue="jax-ml/jax@49e52c08f3bb",
)
STRIDES_AND_PADDING = deviation(
    "jax<0.7",
    params=["defaults"],
    error="TypeError",
    match="missing 2 required positional arguments",
    reason="strides and padding had no default",
    issue="jax-ml/jax@46b19cda0ea0",
)
WINDOWS = {
    "lists": {"given": [[2], [1], [[0, 1]]], "expected": (1, 3, 5, 3)},
    "defaults": {"given": [(2,)], "expected": (1, 3, 5)},
}


@probe(
    source="jax-ml/jax@46b19cda0ea0",
    params=WINDOWS,
    deviations=[LISTS_OF_SIZES, STRIDES_AND_PADDING],
)
def window_of_a_reduction(env, given, expected):
    """`lax.reduce_window` takes lists from 0.6.2 on, and has defaults from 0.7.0 on."""
    result = lax.reduce_window(np.arange(4, dtype=np.float32), np.float32(0), lax.add, *given)
    return Observed(result, reference=f32(*expected))


ELEMENT_OF_NOTHING = deviation(
    "jax<0.11.1",
    error="IndexError",
    match="out of bounds",
    reason="the median read an element of the empty array",
)


@probe(source="jax-ml/jax@77af61c3120a", deviations=[ELEMENT_OF_NOTHING])
def nanmedian_of_nothing(env):
    """`jnp.nanmedian` of an empty array is NaN from 0.11.1 on; before, an IndexError."""
    return Observed(replace_nan(jnp.nanmedian(f32())), reference=replace_nan(np.float32(np.nan)))


NO_COMPOSITE = deviation(
    "jax<0.5",
    error="AttributeError",
    match="composite",
    reason="the function was added in 0.5.0",
    issue="jax-ml/jax@d206cc3b5051",
)
ATTRIBUTES_REFUSED = deviation(
    "jax>=0.5,<0.5.1",
    params=["none"],
    error="",
    reason="None could not be lowered",
    issue="jax-ml/jax@6b19bb209139",
)
COMPOSITES = {
    "plain": {"attributes": {}},
    "none": {"attributes": {"a": None}},
}


@probe(
    source="jax-ml/jax@d206cc3b5051",
    params=COMPOSITES,
    deviations=[NO_COMPOSITE, ATTRIBUTES_REFUSED],
)
def composite(env, attributes):
    """`lax.composite` is new in 0.5.0; attributes that are None, in 0.5.1."""

    def increase(x, **_):
        return x + 1

    fn = lax.composite(increase, "my.op")
    return Observed(jax.jit(lambda x: fn(x, **attributes))(f32(1, 2)), reference=f32(2, 3))


NO_HANDLER_OF_TRACERS = deviation(
    "jax<0.5.1",
    outcome="ok",
    reason="the attribute failed when the operation was lowered",
    issue="jax-ml/jax@2828bce2e646",
)


@probe(
    source="jax-ml/jax@2828bce2e646",
    releases="jax>=0.5",
    deviations=[NO_HANDLER_OF_TRACERS],
)
def traced_attribute_of_a_composite(env):
    """A traced attribute of a composite is an UnexpectedTracerError that names it, from 0.5.1."""
    fn = lax.composite(lambda x, **_: x + 1, "my.op")
    return Observed(ending(jax.jit(lambda x: fn(x, a=x)), f32(1)), "UnexpectedTracerError")
