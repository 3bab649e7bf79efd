"""Outputs of pmap: the class of their sharding, and the devices of their parts.

Up to 0.7.2 pmap was a separate implementation, whose outputs had a `PmapSharding`; from 0.8.0 it
is `jit` of `shard_map`, and they have a `NamedSharding`. The numbers are the same. The later uses
of an output differ: indexing it, adding it, passing it to `jit`. The references describe an array
that is sharded by a mesh, so the old implementation deviates.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import defaults, deviation, probe

from ._helpers import DEVICES, describe_layout, get_device_ids, map_rows, observe, rows

defaults(platforms=("cpu",))


PMAP_SHARDING = deviation(
    "jax<0.8",
    outcome="ok",
    reason="pmap was a separate implementation with its own sharding",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=4,
    params={
        "mapped": {"out_axes": 0},
        "second_axis": {"out_axes": 1},
        "replicated": {"out_axes": None},
    },
    deviations=[PMAP_SHARDING],
)
def sharding_of_outputs(env, out_axes):
    """Outputs have a NamedSharding from 0.8.0; their shards keep the mapped axis from 0.4.34.

    Before 0.8.0 they have a PmapSharding. Code that reads `x.sharding.sharding_spec`, or that finds
    arrays of pmap by the class of their sharding, no longer finds any. Up to 0.4.33 a shard had one
    axis less than the array.
    """
    out = map_rows(env, lambda row: jax.lax.psum(row, "i"), out_axes=out_axes)(rows())
    expected = {
        0: {"spec": "['i']", "shard": [1, 2]},
        1: {"spec": "[None, 'i']", "shard": [2, 1]},
        None: {"spec": "[]", "shard": [2]},
    }[out_axes]
    return observe(describe_layout(out), {"sharding": "NamedSharding", **expected})


INDEX_RETURNED_THE_SHARD = deviation(
    "jax<0.8",
    outcome="ok",
    reason="an index returned the shard from its device, without a copy",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, deviations=[INDEX_RETURNED_THE_SHARD])
def devices_of_an_indexed_output(env):
    """`out[0]` was the shard of the first device; from 0.8.0 it is copied to every device.

    This is the cost of the new pmap that people notice: `metrics[0]`, meant to look at a single
    replica, is a gather over all devices. `out.addressable_shards[0].data` still reads only the
    replica.
    """
    out = map_rows(env, lambda row: 2 * row)(rows())
    parts = {"first": out[0], "last": out[-1], "slice": out[0:1]}
    exact = {"first": 2 * rows()[0], "last": 2 * rows()[-1], "slice": 2 * rows()[0:1]}
    everywhere = list(range(DEVICES))
    return observe(
        {name: {"devices": get_device_ids(part), "value": part} for name, part in parts.items()},
        {name: {"devices": everywhere, "value": value} for name, value in exact.items()},
    )


ROWS_STAYED_ON_DEVICES = deviation(
    "jax<0.8",
    outcome="ok",
    reason="each row stayed on its own device",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, deviations=[ROWS_STAYED_ON_DEVICES])
def devices_of_iterated_rows(env):
    """`for row in out` puts rows on the first device from 0.8.0; before, each stayed in place."""
    out = map_rows(env, lambda row: 2 * row)(rows())
    parts = [*out]
    return observe(
        {"devices": [get_device_ids(part) for part in parts], "value": parts},
        {"devices": [[0]] * DEVICES, "value": [*(2 * rows())]},
    )


PMAP_SHARDING_UNKNOWN_TO_JIT = deviation(
    "jax<0.8",
    outcome="ok",
    reason="jit did not support PmapSharding: it gathered the array on one device",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, deviations=[PMAP_SHARDING_UNKNOWN_TO_JIT])
def output_used_by_jit(env):
    """An output that is used outside its pmap stays sharded from 0.8.0.

    Before, it was silently gathered on one device.
    """
    out = map_rows(env, lambda row: row + 1)(rows())
    used = {"operator": out + out, "jit": jax.jit(lambda x: x * 2)(out)}
    where = {"sharding": "NamedSharding", "spec": "['i']", "shard": [1, 2]}
    return observe(
        {how: {**describe_layout(x), "value": x} for how, x in used.items()},
        {how: {**where, "value": 2 * (rows() + 1)} for how in used},
    )


PMAP_SHARDING_NAMES_NO_AXIS = deviation(
    "jax<0.8",
    outcome="ok",
    reason="a PmapSharding names no axis",
    issue="jax-ml/jax@aa2f995b1db5",
)
ADDRESS_IN_AXIS_NAME = deviation(
    "jax>=0.8,<0.10.2",
    outcome="ok",
    reason="the name contained an address, which differs between processes",
    issue="jax-ml/jax@0fb08bbf4cd3",
)


@probe(
    source="jax-ml/jax@0fb08bbf4cd3",
    devices=4,
    deviations=[PMAP_SHARDING_NAMES_NO_AXIS, ADDRESS_IN_AXIS_NAME],
)
def name_of_an_unnamed_axis(env):
    """Without `axis_name` the mesh has an axis nevertheless, whose name is stable from 0.10.2.

    Before, the PartitionSpec of an output contained a name with an address, which no other process
    can reproduce: a mesh with that name equals no other mesh.
    """
    out = jax.pmap(lambda row: row, devices=env.devices[:DEVICES])(rows())
    spec = getattr(out.sharding, "spec", ())
    return observe(
        {"axes": len(spec), "with_address": ["0x" in str(axis) for axis in spec]},
        {"axes": 1, "with_address": [False]},
    )


PMAP_SHARDING_KEPT_LONGER = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="these functions returned a PmapSharding, for two releases longer than pmap itself",
    issue="jax-ml/jax@691bf927f80c",
)
DEVICE_PUT_FOR_PMAP_REMOVED = deviation(
    "jax>=0.10",
    error="AttributeError",
    match="device_put_(replicated|sharded)",
    reason="removed in favour of device_put with a NamedSharding; for sharded data, of a stack",
    issue="jax-ml/jax@7de56b9ca3f7",
)


@probe(
    source="jax-ml/jax@691bf927f80c",
    devices=4,
    params={"replicated": {"kind": "replicated"}, "sharded": {"kind": "sharded"}},
    deviations=[PMAP_SHARDING_KEPT_LONGER, DEVICE_PUT_FOR_PMAP_REMOVED],
)
def device_put_for_pmap(env, kind):
    """`device_put_replicated` and `device_put_sharded` return a NamedSharding from 0.8.2.

    Both are removed in 0.10. A pmap that takes their result always accepted either sharding, so the
    numbers never changed.
    """
    devices = env.devices[:DEVICES]
    if kind == "replicated":
        put = jax.device_put_replicated(np.ones(2, np.float32), devices)
    else:
        put = jax.device_put_sharded([*rows()], devices)
    total = map_rows(env, lambda row: jax.lax.psum(row, "i"))(put)
    exact = np.full((4, 2), 4.0) if kind == "replicated" else np.tile(rows().sum(0), (4, 1))
    return observe(
        {
            "sharding": type(put.sharding).__name__,
            "shard": describe_layout(put)["shard"],
            "total": total,
        },
        {"sharding": "NamedSharding", "shard": [1, 2], "total": exact.astype(np.float32)},
    )


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4)
def device_put_instead(env):
    """`device_put` of a stack with a NamedSharding over a mesh works with pmap on every release.

    It replaces `device_put_replicated` and `device_put_sharded`.
    """
    by_rows = NamedSharding(env.mesh(DEVICES, "i"), P("i"))
    state = jax.device_put(np.broadcast_to(np.arange(2.0, dtype=np.float32), (DEVICES, 2)), by_rows)
    total = map_rows(env, lambda row: jax.lax.psum(row, "i"))(state)
    return observe(
        {"put": describe_layout(state), "total": total},
        {
            "put": {"sharding": "NamedSharding", "spec": "['i']", "shard": [1, 2]},
            "total": np.tile(np.float32([0, 4]), (4, 1)),
        },
    )


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4)
def order_of_devices(env):
    """With `devices=` in reverse, row `k` is on the `k`-th device of the list, on every release."""
    devices = env.devices[:DEVICES][::-1]
    out = jax.pmap(lambda row: row + 1, devices=devices)(rows())
    rows_by_device = {
        shard.device.id: np.asarray(shard.data).reshape(-1) for shard in out.addressable_shards
    }
    return observe(
        [rows_by_device[device] for device in range(DEVICES)],
        [*(rows()[::-1] + 1)],
    )


SHARDS_WITHOUT_MAPPED_AXIS = deviation(
    "jax<0.4.34",
    outcome="ok",
    reason="each shard lacked the mapped axis",
    issue="jax-ml/jax@bf2237a10282",
)


@probe(source="jax-ml/jax@bf2237a10282", devices=4, deviations=[SHARDS_WITHOUT_MAPPED_AXIS])
def index_of_a_shard(env):
    """A shard's `index` shows which rows it holds, as a slice; an integer up to 0.4.33."""
    out = map_rows(env, lambda row: row)(rows())
    shards = sorted(out.addressable_shards, key=lambda shard: shard.device.id)
    return observe(
        [str(shard.index[0]) for shard in shards],
        [f"slice({row}, {row + 1}, None)" for row in range(DEVICES)],
    )


DEPRECATED_BUT_PRESENT = deviation(
    "jax<0.10",
    outcome="ok",
    reason="deprecated from 0.8.1, but still present",
    issue="jax-ml/jax@d224f4dd9261",
)


@probe(source="jax-ml/jax@a64943c22006", deviations=[DEPRECATED_BUT_PRESENT])
def names_that_went(env):
    """`PmapSharding`, `device_put_replicated` and `device_put_sharded` are removed in 0.10."""
    names = {
        "PmapSharding": hasattr(jax.sharding, "PmapSharding"),
        "device_put_replicated": hasattr(jax, "device_put_replicated"),
        "device_put_sharded": hasattr(jax, "device_put_sharded"),
    }
    return observe(names, dict.fromkeys(names, False))


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4)
def output_is_what_vmap_computes(env):
    """The numbers of a pmap are those of a vmap.

    The case has elementwise operations, reductions and a dot product.
    """

    def layer(row, weights):
        return jnp.tanh(row @ weights), jnp.max(row), jnp.argmax(row)

    x, w = rows() / 8, np.array([[1, 2], [3, 4]], np.float32) / 4
    exact = np.tanh(x.astype(np.float64) @ w.astype(np.float64))
    values = map_rows(env, layer, in_axes=(0, None))(x, w)
    return observe(values, (exact, x.max(1), x.argmax(1).astype(np.int32)))
