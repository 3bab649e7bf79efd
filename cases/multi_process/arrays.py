"""Construction and attributes of arrays of which each process holds a part."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

from ._helpers import SHARDS, draw_integers, gather_values, make_split_sharding, make_spread_array

defaults(devices=4, platforms=("cpu-mp2",))


ONE_ARRAY_ONLY = deviation(
    "jax<0.7.1",
    params=["tree"],
    error="AttributeError",
    match="has no attribute",
    reason="the function took one array; map it over the tree",
    issue="jax-ml/jax@5beccd84ccdd",
)


@probe(
    source="jax-ml/jax@5beccd84ccdd",
    params={"one": {"tree": False}, "tree": {"tree": True}},
    deviations=[ONE_ARRAY_ONLY],
)
def own_part_of_a_batch(env, tree):
    """Each process passes the rows that it has loaded, as an array or, from 0.7.1, as a tree."""
    whole = draw_integers(env, 8, 2)
    own = whole[4 * jax.process_index() :][:4]
    local = {"x": own, "y": own[:, 0]} if tree else own
    array = jax.make_array_from_process_local_data(make_split_sharding(env), local)
    reference = whole.astype(np.float64)
    return Observed(array, reference={"x": reference, "y": reference[:, 0]} if tree else reference)


SHARDING_REQUIRED = deviation(
    "jax<0.7.2",
    error="AttributeError",
    match="has no attribute",
    reason="the function took only a sharding, though with a single process it took a spec",
    issue="jax-ml/jax@bd33ec2d57d5",
)


@probe(source="jax-ml/jax@bd33ec2d57d5", deviations=[SHARDING_REQUIRED])
def placed_by_a_spec(env):
    """A `PartitionSpec` can replace a sharding if a mesh is current, from 0.7.2."""
    whole = draw_integers(env, 8)
    with env.compat.set_mesh(env.mesh(SHARDS, "x")):
        own = whole[4 * jax.process_index() :][:4]
        array = jax.make_array_from_process_local_data(P("x"), own)
    return Observed(array, reference=whole.astype(np.float64))


@probe(source="jax-ml/jax#28009")
def columns_of_each_process(env):
    """On a mesh of processes by devices, devices split the rows, and processes the columns.

    A process holds all rows of its columns. It passes no global shape: the shape is inferred.
    """
    mesh = env.mesh((2, 2), ("process", "x"))
    whole = draw_integers(env, 4, 6)
    own = whole[:, 3 * jax.process_index() :][:, :3]
    array = jax.make_array_from_process_local_data(NamedSharding(mesh, P("x", "process")), own)
    return Observed(array, reference=whole.astype(np.float64))


REPLICAS_NOT_COMPARED = deviation(
    error="RanksDiffer",
    reason="JAX does not compare: an array declared replicated differs between processes",
)


@probe(source="jax-ml/jax#28009", deviations=[REPLICAS_NOT_COMPARED])
def replicas_that_differ(env):
    """An array declared replicated is silently accepted if each process passes other values.

    Later each process computes with its own values. `multihost_utils.assert_equal` compares them.
    """
    everywhere = NamedSharding(env.mesh(SHARDS, "x"), P())
    own = np.full(4, jax.process_index(), np.float32)
    array = jax.make_array_from_process_local_data(everywhere, own)
    return Observed(array, reference=np.zeros(4))


@probe(source="jax-ml/jax#28009")
def callback_for_own_shards(env):
    """`make_array_from_callback` asks a process only for its own shards, and once for each."""
    starts = []

    def part(index):
        starts.append(index[0].start or 0)
        return np.arange(8, dtype=np.float32)[index]

    array = jax.make_array_from_callback((8,), make_split_sharding(env), part)
    return Observed(
        (array, gather_values(sorted(starts))), (np.arange(8.0), np.array([[0, 2], [4, 6]]))
    )


LIST_REQUIRED = deviation(
    "jax<0.6",
    params=["tuple"],
    error="TypeError",
    reason="the function took only a list",
    issue="jax-ml/jax#27303",
)


@probe(
    source="jax-ml/jax#27303",
    params={"list": {"kind": "list"}, "tuple": {"kind": "tuple"}},
    deviations=[LIST_REQUIRED],
)
def put_together(env, kind):
    """An array is put together from one array per device, of the devices of this process."""
    whole = draw_integers(env, 8)
    places = make_split_sharding(env).addressable_devices_indices_map(whole.shape).items()
    parts = [jax.device_put(whole[index], device) for device, index in places]
    parts = tuple(parts) if kind == "tuple" else parts
    array = jax.make_array_from_single_device_arrays(whole.shape, make_split_sharding(env), parts)
    return Observed(array, reference=whole.astype(np.float64))


@probe(source="jax-ml/jax#28009")
def what_it_says_of_itself(env):
    """A split array and a replicated array report their shape, shards and addressability."""
    whole = draw_integers(env, 8, 3)
    split = make_spread_array(env, whole)
    same = make_spread_array(env, whole, NamedSharding(env.mesh(SHARDS, "x"), P()))
    observed = {
        "shapes": [split.shape, split.addressable_data(0).shape, same.addressable_data(0).shape],
        "own shards": [len(split.addressable_shards), len(same.addressable_shards)],
        "all shards": [len(split.global_shards), len(same.global_shards)],
        "addressable": [split.is_fully_addressable, same.is_fully_addressable],
        "replicated": [split.is_fully_replicated, same.is_fully_replicated],
        "data elsewhere": sum(shard.data is None for shard in split.global_shards),
    }
    reference = {
        "shapes": [(8, 3), (2, 3), (8, 3)],
        "own shards": [2, 2],
        "all shards": [4, 4],
        "addressable": [False, False],
        "replicated": [False, True],
        "data elsewhere": 2,
    }
    return Observed(observed, reference=reference)


FIRST_PROCESS_PASSED = deviation(
    "jax<0.8",
    params=["another"],
    outcome="ok",
    reason="each process compared with the first, which therefore agreed with itself",
    issue="jax-ml/jax@d7f5ee2d159d",
)


@probe(
    source="jax-ml/jax#28009",
    params={"the_same": {"differ": False}, "another": {"differ": True}},
    deviations=[FIRST_PROCESS_PASSED],
)
def put_on_all_devices(env, differ):
    """`device_put` over all processes needs the same NumPy array in each process."""
    whole = draw_integers(env, 8) + (jax.process_index() if differ else 0)
    if differ:
        refused = ending(jax.device_put, whole, make_split_sharding(env)).startswith(
            "AssertionError"
        )
        return Observed(gather_values(refused), reference=np.array([True, True]))
    return Observed(
        jax.device_put(whole, make_split_sharding(env)), reference=whole.astype(np.float64)
    )


@probe(source="jax-ml/jax#28009")
def of_this_process_alone(env):
    """On a mesh of its own devices each process computes its own sum, and waits for no other."""
    own = sorted(jax.local_devices(), key=lambda device: device.id)
    mesh = env.compat.make_mesh((2,), ("x",), devices=np.array(own))
    values = np.arange(4, dtype=np.float32) + 10 * jax.process_index()
    total = jax.jit(lambda x: x.sum())(jax.device_put(values, NamedSharding(mesh, P("x"))))
    return Observed(gather_values(total), reference=np.array([6.0, 46.0]))
