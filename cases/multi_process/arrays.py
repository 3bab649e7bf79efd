"""Making arrays of which each process holds a part, and asking them what they are."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import ending

from ._helpers import SHARDS, numbers, of_all, split, spread


@probe(
    source="jax-ml/jax@5beccd84ccdd",
    devices=4,
    platforms=("cpu-mp2",),
    params={"one": {"tree": False}, "tree": {"tree": True}},
    deviations=[
        deviation(
            "jax<0.7.1",
            params=["tree"],
            error="AttributeError",
            match="has no attribute",
            reason="it took one array; map it over the tree there",
            issue="jax-ml/jax@5beccd84ccdd",
        )
    ],
)
def own_part_of_a_batch(env, tree):
    """Each process hands in the rows it has loaded, of one array or, since 0.7.1, of a tree."""
    whole = numbers(env, 8, 2)
    own = whole[4 * jax.process_index() :][:4]
    local = {"x": own, "y": own[:, 0]} if tree else own
    made = jax.make_array_from_process_local_data(split(env), local)
    reference = whole.astype(np.float64)
    return Observed(made, reference={"x": reference, "y": reference[:, 0]} if tree else reference)


@probe(
    source="jax-ml/jax@bd33ec2d57d5",
    devices=4,
    platforms=("cpu-mp2",),
    deviations=[
        deviation(
            "jax<0.7.2",
            error="AttributeError",
            match="has no attribute",
            reason="it took a sharding only, though a single process took a spec",
            issue="jax-ml/jax@bd33ec2d57d5",
        )
    ],
)
def placed_by_a_spec(env):
    """A `PartitionSpec` in place of a sharding, with a current mesh: since 0.7.2."""
    whole = numbers(env, 8)
    with env.compat.set_mesh(env.mesh(SHARDS, "x")):
        own = whole[4 * jax.process_index() :][:4]
        made = jax.make_array_from_process_local_data(P("x"), own)
    return Observed(made, reference=whole.astype(np.float64))


@probe(source="jax-ml/jax#28009", devices=4, platforms=("cpu-mp2",))
def columns_of_each_process(env):
    """A mesh of processes by devices: rows are split over devices, columns over processes.

    A process holds all rows of its columns, and gives no global shape: it is inferred.
    """
    mesh = env.mesh((2, 2), ("process", "x"))
    whole = numbers(env, 4, 6)
    own = whole[:, 3 * jax.process_index() :][:, :3]
    made = jax.make_array_from_process_local_data(NamedSharding(mesh, P("x", "process")), own)
    return Observed(made, reference=whole.astype(np.float64))


@probe(
    source="jax-ml/jax#28009",
    devices=4,
    platforms=("cpu-mp2",),
    deviations=[
        deviation(
            error="RanksDiffer",
            reason="nobody compares: what is called the same on all is another in each process",
        )
    ],
)
def replicas_that_differ(env):
    """An array declared replicated, of which each process hands in another: accepted silently.

    Later each process computes with its own. `multihost_utils.assert_equal` compares.
    """
    everywhere = NamedSharding(env.mesh(SHARDS, "x"), P())
    own = np.full(4, jax.process_index(), np.float32)
    made = jax.make_array_from_process_local_data(everywhere, own)
    return Observed(made, reference=np.zeros(4))


@probe(source="jax-ml/jax#28009", devices=4, platforms=("cpu-mp2",))
def callback_for_own_shards(env):
    """`make_array_from_callback` asks a process for its own shards only, and each once."""
    asked = []

    def part(index):
        asked.append(index[0].start or 0)
        return np.arange(8, dtype=np.float32)[index]

    made = jax.make_array_from_callback((8,), split(env), part)
    return Observed((made, of_all(sorted(asked))), (np.arange(8.0), np.array([[0, 2], [4, 6]])))


@probe(
    source="jax-ml/jax#27303",
    devices=4,
    platforms=("cpu-mp2",),
    params={"list": {"kind": "list"}, "tuple": {"kind": "tuple"}},
    deviations=[
        deviation(
            "jax<0.6",
            params=["tuple"],
            error="TypeError",
            reason="a list was taken and nothing else",
            issue="jax-ml/jax#27303",
        )
    ],
)
def put_together(env, kind):
    """An array from one array a device, of the devices of this process."""
    whole = numbers(env, 8)
    places = split(env).addressable_devices_indices_map(whole.shape).items()
    parts = [jax.device_put(whole[index], device) for device, index in places]
    parts = tuple(parts) if kind == "tuple" else parts
    made = jax.make_array_from_single_device_arrays(whole.shape, split(env), parts)
    return Observed(made, reference=whole.astype(np.float64))


@probe(source="jax-ml/jax#28009", devices=4, platforms=("cpu-mp2",))
def what_it_says_of_itself(env):
    """Shape, shards and addressability of a split array and of a replicated one."""
    whole = numbers(env, 8, 3)
    parted = spread(env, whole)
    same = spread(env, whole, NamedSharding(env.mesh(SHARDS, "x"), P()))
    seen = {
        "shapes": [parted.shape, parted.addressable_data(0).shape, same.addressable_data(0).shape],
        "own shards": [len(parted.addressable_shards), len(same.addressable_shards)],
        "all shards": [len(parted.global_shards), len(same.global_shards)],
        "addressable": [parted.is_fully_addressable, same.is_fully_addressable],
        "replicated": [parted.is_fully_replicated, same.is_fully_replicated],
        "data elsewhere": sum(shard.data is None for shard in parted.global_shards),
    }
    reference = {
        "shapes": [(8, 3), (2, 3), (8, 3)],
        "own shards": [2, 2],
        "all shards": [4, 4],
        "addressable": [False, False],
        "replicated": [False, True],
        "data elsewhere": 2,
    }
    return Observed(seen, reference=reference)


@probe(
    source="jax-ml/jax#28009",
    devices=4,
    platforms=("cpu-mp2",),
    params={"the_same": {"differ": False}, "another": {"differ": True}},
    deviations=[
        deviation(
            "jax<0.8",
            params=["another"],
            outcome="ok",
            reason="each compared with the first process, which so agreed with itself",
            issue="jax-ml/jax@d7f5ee2d159d",
        )
    ],
)
def put_on_all_devices(env, differ):
    """`device_put` of a NumPy array, split over all processes: each must have the same one."""
    whole = numbers(env, 8) + (jax.process_index() if differ else 0)
    if differ:
        refused = ending(jax.device_put, whole, split(env)).startswith("AssertionError")
        return Observed(of_all(refused), reference=np.array([True, True]))
    return Observed(jax.device_put(whole, split(env)), reference=whole.astype(np.float64))


@probe(source="jax-ml/jax#28009", devices=4, platforms=("cpu-mp2",))
def of_this_process_alone(env):
    """A mesh of a process's own devices: nobody is waited for, each computes its own sum."""
    own = sorted(jax.local_devices(), key=lambda device: device.id)
    mesh = env.compat.make_mesh((2,), ("x",), devices=np.array(own))
    values = np.arange(4, dtype=np.float32) + 10 * jax.process_index()
    total = jax.jit(lambda x: x.sum())(jax.device_put(values, NamedSharding(mesh, P("x"))))
    return Observed(of_all(total), reference=np.array([6.0, 46.0]))
