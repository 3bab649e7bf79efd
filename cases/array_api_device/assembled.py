"""Arrays assembled from parts or from local data, and arrays like another of a different shape."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

from ._helpers import list_devices

defaults(devices=4, platforms=("cpu",))


def numbers(*shape):
    """Return 0, 1, 2, ... in a shape, as float32."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


GLOBAL_SHAPE_IGNORED = deviation(
    "jax>=0.4.34,<0.7.1",
    outcome="ok",
    reason="with one process the data went to device_put, and the global shape was ignored",
    issue="jax-ml/jax@3688db9994a2",
)


@probe(source="jax-ml/jax@3688db9994a2", deviations=[GLOBAL_SHAPE_IGNORED])
def global_shape_of_one_process(env):
    """In one process, a `global_shape` other than that of the local data is refused.

    From 0.4.34 to 0.7.0 it was ignored, and the array silently had the shape of the local data.
    """
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    outcome = ending(
        lambda: str(jax.make_array_from_process_local_data(rows, numbers(4, 2), (8, 2)).shape)
    )
    return Observed(outcome, "ValueError")


ONE_ARRAY_ONLY = deviation(
    "jax<0.4.34",
    error="AttributeError",
    match="object has no attribute 'shape'",
    reason="the argument had to be a single array",
    issue="jax-ml/jax@a2b39192d285",
)
DATA = {"tree": {"a": numbers(4, 2)}, "number": 3.0}


@probe(source="jax-ml/jax@a2b39192d285", params=[*DATA], deviations=[ONE_ARRAY_ONLY])
def local_data_of_one_process(env, name):
    """In one process, `make_array_from_process_local_data` takes trees and numbers."""
    whole = NamedSharding(env.mesh(4, "x"), P())
    out = jax.make_array_from_process_local_data(whole, DATA[name])
    exact = {"tree": {"a": numbers(4, 2)}, "number": np.float32(3)}
    return Observed(jax.tree_util.tree_map(np.asarray, out), exact[name])


NO_DTYPE = deviation(
    "jax<0.5.3",
    error="TypeError",
    match="unexpected keyword argument 'dtype'",
    reason="the dtype was always that of the first part",
    issue="jax-ml/jax@bdb6d033222e",
)


@probe(source="jax-ml/jax@bdb6d033222e", deviations=[NO_DTYPE])
def dtype_of_a_callback(env):
    """`make_array_from_callback` takes a `dtype`, from 0.5.3 on, which the parts must have."""
    rows, x = NamedSharding(env.mesh(4, "x"), P("x")), numbers(8)
    out = jax.make_array_from_callback((8,), rows, lambda index: x[index], dtype=np.float32)
    other = ending(
        lambda: jax.make_array_from_callback((8,), rows, lambda index: x[index], dtype=np.int32),
        words=["must match the dtype"],
    )
    return Observed(
        {"value": np.asarray(out), "other": other},
        {"value": x, "other": "ValueError: must match the dtype"},
    )


NOT_A_LIST = deviation(
    "jax<0.5.1",
    params=["array"],
    outcome="ok",
    reason="the message was that of the binding to C++",
    issue="jax-ml/jax@1fb4b93d41d5",
)
TWICE_ON_A_DEVICE = deviation(
    "jax<0.4.31",
    params=["same_device"],
    outcome="ok",
    reason="the message named devices without a part",
    issue="jax-ml/jax@1a91fe76779a",
)
PARTS = {
    "array": (lambda part: part, "TypeError: argument must be a"),
    "same_device": (lambda part: [part] * 4, "ValueError: from distinct devices"),
}
WORDS = ["argument must be a", "from distinct devices"]


@probe(
    source="jax-ml/jax@1fb4b93d41d5",
    params=[*PARTS],
    deviations=[NOT_A_LIST, TWICE_ON_A_DEVICE],
)
def refused_parts(env, name):
    """`make_array_from_single_device_arrays` explains which parts it refuses."""
    parts, expected = PARTS[name]
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    part = jax.device_put(numbers(2), env.devices[0])
    outcome = ending(
        lambda: jax.make_array_from_single_device_arrays((8,), rows, parts(part)), words=WORDS
    )
    return Observed(outcome, expected)


ON_THE_DEFAULT_DEVICE = deviation(
    "jax<0.9.1",
    outcome="ok",
    reason="only a result of the same shape kept the sharding of the argument",
    issue="jax-ml/jax#35273",
)


@probe(source="jax-ml/jax#35273", deviations=[ON_THE_DEFAULT_DEVICE])
def like_but_of_another_shape(env):
    """`zeros_like(x, shape=...)` of an x on one device is on that device, from 0.9.1 on."""
    x = jax.device_put(numbers(8), env.devices[1])
    make = {"zeros": jnp.zeros_like, "ones": jnp.ones_like, "empty": jnp.empty_like}
    observed = {name: list_devices(like(x, shape=(3,))) for name, like in make.items()}
    return Observed(observed, dict.fromkeys(observed, "cpu:1"))
