"""Arguments of pmap: arrays on other devices, sizes that do not fit, static and donated arguments.

The old implementation moved every argument to its devices and, given a list of devices, refused
any other number of rows. As `jit` of `shard_map` (0.8.0) a pmap has the rules of jit: arguments
that are committed to another device are refused, and a smaller batch uses fewer devices.
"""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import defaults, deviation, probe

from ._helpers import DEVICES, get_device_ids, map_rows, observe, rows

defaults(platforms=("cpu",))


OTHER_DEVICE_REFUSED = deviation(
    "jax>=0.8,<0.9.1",
    error="ValueError",
    match="incompatible devices for jitted computation",
    reason="like jit, pmap refuses an argument that was put on another device",
    issue="jax-ml/jax@aa2f995b1db5",
)
OTHER_DEVICE_REFUSED_AS_SHARDING = deviation(
    "jax>=0.9.1",
    error="ValueError",
    match="Sharding passed to jit does not match the sharding on the respective arg",
    reason="like jit, pmap refuses an argument that was put on another device",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=6,
    deviations=[OTHER_DEVICE_REFUSED, OTHER_DEVICE_REFUSED_AS_SHARDING],
)
def argument_committed_elsewhere(env):
    """A batch that is committed to another device is refused from 0.8.0, as by jit.

    Before, pmap spread it over its devices. Do not commit the batch, or pass a NumPy array: an
    uncommitted batch is spread.
    """
    batch = jax.device_put(rows(), env.devices[5])
    out = map_rows(env, lambda row: 2 * row)(batch)
    return observe(
        {"devices": get_device_ids(out), "value": out},
        {"devices": [0, 1, 2, 3], "value": 2 * rows()},
    )


OTHER_SHARDING_REFUSED = deviation(
    "jax>=0.9.1",
    error="ValueError",
    match="Sharding passed to jit does not match the sharding on the respective arg",
    reason="the mapped function declares the sharding of its arguments, and jit accepts no other",
    issue="jax-ml/jax@ee911642c572",
)


@probe(source="jax-ml/jax@a2912b07d41f", devices=4, deviations=[OTHER_SHARDING_REFUSED])
def replicated_argument(env):
    """An array that is replicated on each device, mapped over its rows, is refused from 0.9.1.

    Before, any sharding was accepted. Put the array as pmap expects it, by rows.
    """
    everywhere = NamedSharding(env.mesh(DEVICES, "i"), P())
    out = map_rows(env, lambda row: 2 * row)(jax.device_put(rows(), everywhere))
    return observe(
        {"devices": get_device_ids(out), "value": out},
        {"devices": [0, 1, 2, 3], "value": 2 * rows()},
    )


AS_MANY_ROWS_AS_DEVICES = deviation(
    "jax<0.8",
    error="ValueError",
    match="must equal the number of local devices passed to pmap",
    reason="the number of rows had to equal the number of devices",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, deviations=[AS_MANY_ROWS_AS_DEVICES])
def fewer_rows_than_devices(env):
    """Two rows for a list of four devices run on the first two devices from 0.8.0.

    Up to 0.7.2 it was an error. Now it is silent: a batch that is too small by mistake is computed
    on half of the machine.
    """
    out = map_rows(env, lambda row: jax.lax.psum(row, "i"))(rows()[:2])
    return observe(
        {"devices": get_device_ids(out), "value": out},
        {"devices": [0, 1], "value": np.tile(rows()[:2].sum(0), (2, 1))},
    )


def describe_error(call):
    """Return the class of the error that a call raises, and the first words of its message."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the class of the error is the observation
        return {"type": type(error).__name__, "says": " ".join(str(error).split()[:6])}
    return {"type": "nothing", "says": ""}


@probe(
    source="jax-ml/jax@280f6b4e11eb",
    records="the wording of errors is up to jax",
    devices=4,
    params={
        "too_many_rows": {"shape": (9, 2)},
        "scalar": {"shape": ()},
        "other_size": {"shape": (3, 2)},
    },
)
def refused_sizes(env, shape):
    """Sizes that cannot be mapped over four devices are always refused, with varying errors.

    No reference, as the words are the observation: people search for them. From 0.9.1 the error for
    a scalar is a bare `IndexError: tuple index out of range`, as pmap itself checks less.
    """
    call = map_rows(env, lambda a, b: a + b)
    if tuple(shape) == (3, 2):
        return describe_error(lambda: call(rows(), np.ones(shape, np.float32)))
    return describe_error(lambda: call(np.ones(shape, np.float32), np.ones(shape, np.float32)))


STATIC_ARGUMENTS_ARE_HASHED = deviation(
    params=["list"],
    error="ValueError",
    match="Non-hashable static arguments are not supported",
    reason="static arguments are keys of a cache",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=4,
    params={"number": {"static": 3}, "list": {"static": [3]}},
    deviations=[STATIC_ARGUMENTS_ARE_HASHED],
)
def static_argument(env, static):
    """`static_broadcasted_argnums` makes a number a constant of the program, and refuses a list.

    From 0.8.0 the error for a list has different words.
    """

    def scaled(row, factor):
        return row * (factor if isinstance(factor, int) else factor[0])

    out = map_rows(env, scaled, static_broadcasted_argnums=1)(rows(), static)
    return observe(out, 3 * rows())


COPY_WAS_DONATED = deviation(
    "jax<0.4.34",
    params=["by_mesh"],
    outcome="ok",
    reason="the shards had another rank, so the array was copied and the copy donated",
    issue="jax-ml/jax@bf2237a10282",
)


@probe(
    source="jax-ml/jax@bf2237a10282",
    devices=4,
    deviations=[COPY_WAS_DONATED],
    params={"own": {"how": "own"}, "by_mesh": {"how": "by_mesh"}},
)
def donated_argument(env, how):
    """A donated argument is deleted after the call.

    Up to 0.4.33 an array with a NamedSharding was copied, and not deleted.
    """
    if how == "own":
        state = map_rows(env, lambda row: row)(rows())
    else:
        state = jax.device_put(rows(), NamedSharding(env.mesh(DEVICES, "i"), P("i")))
    out = map_rows(env, lambda row: row + 1, donate_argnums=0)(state)
    return observe(
        {"deleted": state.is_deleted(), "value": out}, {"deleted": True, "value": rows() + 1}
    )


NO_DONATION_WARNING = deviation(
    "jax>=0.8",
    outcome="ok",
    reason="an argument that does not fit is not donated, and there is no warning",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, deviations=[NO_DONATION_WARNING])
def donation_that_does_not_fit(env):
    """Donating an argument that no output can use is a warning up to 0.7.2, and none from 0.8.0."""
    state = map_rows(env, lambda row: row)(rows())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = map_rows(env, lambda row: row.astype(jnp.int8), donate_argnums=0)(state)
    has_warned = any(
        "donated buffers were not usable" in str(warning.message) for warning in caught
    )
    return observe(
        {"told": has_warned, "value": out}, {"told": True, "value": rows().astype(np.int8)}
    )


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4)
def in_axes(env):
    """`in_axes` of None, of a second axis and in a tree give the same numbers on every release."""
    row, columns = np.float32([0, 1]), np.arange(8, dtype=np.float32).reshape(2, 4)

    def products(tree, columns):
        return {"none": tree["a"] * tree["b"], "second": tree["a"] * columns}

    fn = map_rows(env, products, in_axes=({"a": 0, "b": None}, 1))
    products_by_axis = fn({"a": rows(), "b": row}, columns)
    return observe(products_by_axis, {"none": rows() * row, "second": rows() * columns.T})


TRACED_FOR_EACH_SHARDING = deviation(
    "jax>=0.8",
    outcome="ok",
    reason="like jit, pmap is traced again for another kind of sharding",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(source="jax-ml/jax@280f6b4e11eb", devices=4, deviations=[TRACED_FOR_EACH_SHARDING])
def number_of_traces(env):
    """NumPy, jax and pmapped arguments share a trace up to 0.7.2; from 0.8.0 there are two traces.

    A pmap that counts its traces, or warns when it is traced again, does so in its second step.
    """
    traces = []

    def step(row):
        traces.append(1)
        return 2 * row

    step = map_rows(env, step)
    out = step(step(jnp.asarray(step(rows()))))
    return observe({"traces": len(traces), "value": out}, {"traces": 1, "value": 8 * rows()})
