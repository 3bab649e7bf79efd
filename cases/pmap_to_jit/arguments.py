"""What a pmap takes: arrays that lie elsewhere, sizes that do not fit, what is static or donated.

The old machinery moved every argument to where it was needed and refused any number of rows that
was not its number of devices. As `jit` of `shard_map` (0.8.0) a pmap has the rules of jit:
arguments that are committed elsewhere are refused, and a smaller batch uses fewer devices.
"""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import deviation, probe

from ._helpers import DEVICES, ids, mapped, observed, rows


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=6,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.8,<0.9.1",
            error="ValueError",
            match="incompatible devices for jitted computation",
            reason="as jit does, pmap refuses an argument that was put on another device",
            issue="jax-ml/jax@aa2f995b1db5",
        ),
        deviation(
            "jax>=0.9.1",
            error="ValueError",
            match="Sharding passed to jit does not match the sharding on the respective arg",
            reason="as jit does, pmap refuses an argument that was put on another device",
            issue="jax-ml/jax@aa2f995b1db5",
        ),
    ],
)
def argument_committed_elsewhere(env):
    """A batch put on one device was spread by pmap; from 0.8.0 it is refused, as jit does.

    Do not put it there, or hand over a NumPy array: a batch that is not committed is spread.
    """
    batch = jax.device_put(rows(), env.devices[5])
    out = mapped(env, lambda row: 2 * row)(batch)
    return observed(
        {"devices": ids(out), "value": out}, {"devices": [0, 1, 2, 3], "value": 2 * rows()}
    )


@probe(
    source="jax-ml/jax@a2912b07d41f",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.9.1",
            error="ValueError",
            match="Sharding passed to jit does not match the sharding on the respective arg",
            reason="the mapped function says how its arguments lie, and jit takes no other way",
            issue="jax-ml/jax@ee911642c572",
        ),
    ],
)
def replicated_argument(env):
    """An array that lies in full on each device, mapped over its rows: refused from 0.9.1.

    Any sharding would do before. Put the array as pmap wants it, by rows.
    """
    everywhere = NamedSharding(env.mesh(DEVICES, "i"), P())
    out = mapped(env, lambda row: 2 * row)(jax.device_put(rows(), everywhere))
    return observed(
        {"devices": ids(out), "value": out}, {"devices": [0, 1, 2, 3], "value": 2 * rows()}
    )


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8",
            error="ValueError",
            match="must equal the number of local devices passed to pmap",
            reason="as many rows as devices were wanted",
            issue="jax-ml/jax@aa2f995b1db5",
        ),
    ],
)
def fewer_rows_than_devices(env):
    """Two rows for a list of four devices: an error up to 0.7.2, the first two devices since.

    It is silent: a batch that came out too small is computed on half of the machine.
    """
    out = mapped(env, lambda row: jax.lax.psum(row, "i"))(rows()[:2])
    return observed(
        {"devices": ids(out), "value": out},
        {"devices": [0, 1], "value": np.tile(rows()[:2].sum(0), (2, 1))},
    )


def refusal(call):
    """Return the class of what a call raises, and the first words of its message."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whichever class it is, is what is asked
        return {"type": type(error).__name__, "says": " ".join(str(error).split()[:6])}
    return {"type": "nothing", "says": ""}


@probe(
    source="jax-ml/jax@280f6b4e11eb",
    records="the words of a refusal are up to jax",
    devices=4,
    platforms=("cpu",),
    params={
        "too_many_rows": {"shape": (9, 2)},
        "scalar": {"shape": ()},
        "other_size": {"shape": (3, 2)},
    },
)
def refused_sizes(env, shape):
    """Sizes that cannot be mapped over four devices: always refused, never twice in one class.

    No reference, as the words are the observation: they are what people search for. A scalar
    is told by a bare `IndexError: tuple index out of range` since pmap checks less by itself.
    """
    call = mapped(env, lambda a, b: a + b)
    if tuple(shape) == (3, 2):
        return refusal(lambda: call(rows(), np.ones(shape, np.float32)))
    return refusal(lambda: call(np.ones(shape, np.float32), np.ones(shape, np.float32)))


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=4,
    platforms=("cpu",),
    params={"number": {"static": 3}, "list": {"static": [3]}},
    deviations=[
        deviation(
            params=["list"],
            error="ValueError",
            match="Non-hashable static arguments are not supported",
            reason="static arguments are keys of a cache",
            issue="jax-ml/jax@aa2f995b1db5",
        )
    ],
)
def static_argument(env, static):
    """`static_broadcasted_argnums`: a number is burnt in, a list is refused, in other words now."""

    def scaled(row, factor):
        return row * (factor if isinstance(factor, int) else factor[0])

    out = mapped(env, scaled, static_broadcasted_argnums=1)(rows(), static)
    return observed(out, 3 * rows())


@probe(
    source="jax-ml/jax@bf2237a10282",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.34",
            params=["by_mesh"],
            outcome="ok",
            reason="the shards had another rank, so the array was copied and its copy donated",
            issue="jax-ml/jax@bf2237a10282",
        )
    ],
    params={"own": {"how": "own"}, "by_mesh": {"how": "by_mesh"}},
)
def donated_argument(env, how):
    """A donated argument is gone after the call; one put by a mesh was copied up to 0.4.33."""
    if how == "own":
        state = mapped(env, lambda row: row)(rows())
    else:
        state = jax.device_put(rows(), NamedSharding(env.mesh(DEVICES, "i"), P("i")))
    out = mapped(env, lambda row: row + 1, donate_argnums=0)(state)
    return observed(
        {"deleted": state.is_deleted(), "value": out}, {"deleted": True, "value": rows() + 1}
    )


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.8",
            outcome="ok",
            reason="what does not fit is not donated, and nobody is told",
            issue="jax-ml/jax@aa2f995b1db5",
        )
    ],
)
def donation_that_does_not_fit(env):
    """Donating an argument that no output can take: a warning up to 0.7.2, none from 0.8.0."""
    state = mapped(env, lambda row: row)(rows())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = mapped(env, lambda row: row.astype(jnp.int8), donate_argnums=0)(state)
    told = any("donated buffers were not usable" in str(warning.message) for warning in caught)
    return observed({"told": told, "value": out}, {"told": True, "value": rows().astype(np.int8)})


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, platforms=("cpu",))
def in_axes(env):
    """`in_axes` of None, of a second axis, in a tree: the same numbers on every release."""
    row, columns = np.float32([0, 1]), np.arange(8, dtype=np.float32).reshape(2, 4)

    def products(tree, columns):
        return {"none": tree["a"] * tree["b"], "second": tree["a"] * columns}

    fn = mapped(env, products, in_axes=({"a": 0, "b": None}, 1))
    made = fn({"a": rows(), "b": row}, columns)
    return observed(made, {"none": rows() * row, "second": rows() * columns.T})


@probe(
    source="jax-ml/jax@280f6b4e11eb",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.8",
            outcome="ok",
            reason="as jit does, it is traced again for another kind of sharding",
            issue="jax-ml/jax@aa2f995b1db5",
        )
    ],
)
def number_of_traces(env):
    """One trace for NumPy, jax and pmapped arguments up to 0.7.2; two since.

    A pmap that counts its traces, or warns when it is traced again, does so in its second step.
    """
    traces = []

    def step(row):
        traces.append(1)
        return 2 * row

    step = mapped(env, step)
    out = step(step(jnp.asarray(step(rows()))))
    return observed({"traces": len(traces), "value": out}, {"traces": 1, "value": 8 * rows()})
