"""What a pmap returns: the class of its sharding, and where its parts lie once taken apart.

Up to 0.7.2 a pmap was a machinery of its own, whose outputs had a `PmapSharding`; from 0.8.0 it is
`jit` of `shard_map` and they have a `NamedSharding`. The numbers are the same. What differs is
what happens to an output next: indexing it, adding it, handing it to `jit`. The references say
how it is for an array that is sharded by a mesh, so it is the old machinery that deviates.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import deviation, probe

from ._helpers import DEVICES, ids, layout, mapped, observed, rows


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=4,
    platforms=("cpu",),
    params={
        "mapped": {"out_axes": 0},
        "second_axis": {"out_axes": 1},
        "replicated": {"out_axes": None},
    },
    deviations=[
        deviation(
            "jax<0.8",
            outcome="ok",
            reason="a pmap was a machinery of its own, with a sharding of its own",
            issue="jax-ml/jax@aa2f995b1db5",
        )
    ],
)
def sharding_of_outputs(env, out_axes):
    """A NamedSharding from 0.8.0, a PmapSharding before; its shards lose no axis from 0.4.34.

    Code that looks at `x.sharding.sharding_spec`, or that finds pmap's arrays by the class of
    their sharding, finds none any more. Up to 0.4.33 a shard had one axis less than the array.
    """
    out = mapped(env, lambda row: jax.lax.psum(row, "i"), out_axes=out_axes)(rows())
    expected = {
        0: {"spec": "['i']", "shard": [1, 2]},
        1: {"spec": "[None, 'i']", "shard": [2, 1]},
        None: {"spec": "[]", "shard": [2]},
    }[out_axes]
    return observed(layout(out), {"sharding": "NamedSharding", **expected})


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8",
            outcome="ok",
            reason="an index took the shard as it lay, without a copy",
            issue="jax-ml/jax@aa2f995b1db5",
        )
    ],
)
def devices_of_an_indexed_output(env):
    """`out[0]` was the first device's shard; from 0.8.0 it is copied to every device.

    This is the price of the new pmap that people meet: `metrics[0]`, meant as a look at one
    replica, is a gather over all devices. `out.addressable_shards[0].data` is still that look.
    """
    out = mapped(env, lambda row: 2 * row)(rows())
    parts = {"first": out[0], "last": out[-1], "slice": out[0:1]}
    exact = {"first": 2 * rows()[0], "last": 2 * rows()[-1], "slice": 2 * rows()[0:1]}
    everywhere = list(range(DEVICES))
    return observed(
        {name: {"devices": ids(part), "value": part} for name, part in parts.items()},
        {name: {"devices": everywhere, "value": value} for name, value in exact.items()},
    )


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8",
            outcome="ok",
            reason="each row was left on its own device",
            issue="jax-ml/jax@aa2f995b1db5",
        )
    ],
)
def devices_of_iterated_rows(env):
    """`for row in out`: a row on each device up to 0.7.2, all rows on the first since."""
    out = mapped(env, lambda row: 2 * row)(rows())
    parts = [*out]
    return observed(
        {"devices": [ids(part) for part in parts], "value": parts},
        {"devices": [[0]] * DEVICES, "value": [*(2 * rows())]},
    )


@probe(
    source="jax-ml/jax@aa2f995b1db5",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8",
            outcome="ok",
            reason="jit knew no PmapSharding: it gathered the array on one device",
            issue="jax-ml/jax@aa2f995b1db5",
        )
    ],
)
def output_used_by_jit(env):
    """Outside its pmap an output was gathered on one device, silently; from 0.8.0 it stays."""
    out = mapped(env, lambda row: row + 1)(rows())
    used = {"operator": out + out, "jit": jax.jit(lambda x: x * 2)(out)}
    where = {"sharding": "NamedSharding", "spec": "['i']", "shard": [1, 2]}
    return observed(
        {how: {**layout(x), "value": x} for how, x in used.items()},
        {how: {**where, "value": 2 * (rows() + 1)} for how in used},
    )


@probe(
    source="jax-ml/jax@0fb08bbf4cd3",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8",
            outcome="ok",
            reason="a PmapSharding names no axis",
            issue="jax-ml/jax@aa2f995b1db5",
        ),
        deviation(
            "jax>=0.8,<0.10.2",
            outcome="ok",
            reason="the name was made of an address, other in each process",
            issue="jax-ml/jax@0fb08bbf4cd3",
        ),
    ],
)
def name_of_an_unnamed_axis(env):
    """Without `axis_name` the mesh has an axis all the same; its name is stable from 0.10.2.

    Before that the PartitionSpec of an output held a name made of an address, which no other
    process can spell: a mesh made from it is equal to nothing.
    """
    out = jax.pmap(lambda row: row, devices=env.devices[:DEVICES])(rows())
    spec = getattr(out.sharding, "spec", ())
    return observed(
        {"axes": len(spec), "with_address": ["0x" in str(axis) for axis in spec]},
        {"axes": 1, "with_address": [False]},
    )


@probe(
    source="jax-ml/jax@691bf927f80c",
    devices=4,
    platforms=("cpu",),
    params={"replicated": {"kind": "replicated"}, "sharded": {"kind": "sharded"}},
    deviations=[
        deviation(
            "jax<0.8.2",
            outcome="ok",
            reason="these still made a PmapSharding, two releases longer than pmap itself",
            issue="jax-ml/jax@691bf927f80c",
        ),
        deviation(
            "jax>=0.10",
            error="AttributeError",
            match="device_put_(replicated|sharded)",
            reason="removed: device_put with a NamedSharding, of a stack where it was sharded",
            issue="jax-ml/jax@7de56b9ca3f7",
        ),
    ],
)
def device_put_for_pmap(env, kind):
    """`device_put_replicated` and `device_put_sharded`: a NamedSharding from 0.8.2, gone in 0.10.

    The function that follows them always took either, so the numbers never changed.
    """
    devices = env.devices[:DEVICES]
    if kind == "replicated":
        put = jax.device_put_replicated(np.ones(2, np.float32), devices)
    else:
        put = jax.device_put_sharded([*rows()], devices)
    total = mapped(env, lambda row: jax.lax.psum(row, "i"))(put)
    exact = np.full((4, 2), 4.0) if kind == "replicated" else np.tile(rows().sum(0), (4, 1))
    return observed(
        {"sharding": type(put.sharding).__name__, "shard": layout(put)["shard"], "total": total},
        {"sharding": "NamedSharding", "shard": [1, 2], "total": exact.astype(np.float32)},
    )


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, platforms=("cpu",))
def device_put_instead(env):
    """What to write instead, on every release: a stack, put by a NamedSharding over a mesh."""
    by_rows = NamedSharding(env.mesh(DEVICES, "i"), P("i"))
    state = jax.device_put(np.broadcast_to(np.arange(2.0, dtype=np.float32), (DEVICES, 2)), by_rows)
    total = mapped(env, lambda row: jax.lax.psum(row, "i"))(state)
    return observed(
        {"put": layout(state), "total": total},
        {
            "put": {"sharding": "NamedSharding", "spec": "['i']", "shard": [1, 2]},
            "total": np.tile(np.float32([0, 4]), (4, 1)),
        },
    )


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, platforms=("cpu",))
def order_of_devices(env):
    """`devices=` in reverse: row `k` goes to the `k`-th device of the list, on every release."""
    devices = env.devices[:DEVICES][::-1]
    out = jax.pmap(lambda row: row + 1, devices=devices)(rows())
    held = {shard.device.id: np.asarray(shard.data).reshape(-1) for shard in out.addressable_shards}
    return observed(
        [held[device] for device in range(DEVICES)],
        [*(rows()[::-1] + 1)],
    )


@probe(
    source="jax-ml/jax@bf2237a10282",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.34",
            outcome="ok",
            reason="each shard had lost the mapped axis",
            issue="jax-ml/jax@bf2237a10282",
        )
    ],
)
def index_of_a_shard(env):
    """A shard's `index` says which rows it holds, as a slice; an integer up to 0.4.33."""
    out = mapped(env, lambda row: row)(rows())
    shards = sorted(out.addressable_shards, key=lambda shard: shard.device.id)
    return observed(
        [str(shard.index[0]) for shard in shards],
        [f"slice({row}, {row + 1}, None)" for row in range(DEVICES)],
    )


@probe(
    source="jax-ml/jax@a64943c22006",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.10",
            outcome="ok",
            reason="deprecated from 0.8.1, but there",
            issue="jax-ml/jax@d224f4dd9261",
        )
    ],
)
def names_that_went(env):
    """`PmapSharding`, `device_put_replicated`, `device_put_sharded`: none is left in 0.10."""
    names = {
        "PmapSharding": hasattr(jax.sharding, "PmapSharding"),
        "device_put_replicated": hasattr(jax, "device_put_replicated"),
        "device_put_sharded": hasattr(jax, "device_put_sharded"),
    }
    return observed(names, dict.fromkeys(names, False))


@probe(source="jax-ml/jax@aa2f995b1db5", devices=4, platforms=("cpu",))
def output_is_what_vmap_computes(env):
    """The numbers of a pmap are those of a vmap, for elementwise work, reductions and a dot."""

    def layer(row, weights):
        return jnp.tanh(row @ weights), jnp.max(row), jnp.argmax(row)

    x, w = rows() / 8, np.array([[1, 2], [3, 4]], np.float32) / 4
    exact = np.tanh(x.astype(np.float64) @ w.astype(np.float64))
    got = mapped(env, layer, in_axes=(0, None))(x, w)
    return observed(got, (exact, x.max(1), x.argmax(1).astype(np.int32)))
