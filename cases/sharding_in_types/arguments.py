"""Arguments of meshes, shardings and constraints: refused with a clear error, or accepted."""

from __future__ import annotations

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

from ._helpers import SHARDS, numbers, reshard

defaults(devices=4, platforms=("cpu",))

SHAPE = (3,)
REFUSED = {
    "axis_without_a_name": (
        lambda mesh: Mesh(mesh.devices.reshape(2, 2), (None, "x")),
        "ValueError: cannot be None",
    ),
    "none_as_spec": (lambda mesh: NamedSharding(mesh, None), "TypeError"),
    "name_as_spec": (lambda mesh: NamedSharding(mesh, "x"), "TypeError"),
    "tuple_as_spec": (lambda mesh: NamedSharding(mesh, ("x",)), "TypeError"),
    "struct_of_lower_rank": (
        lambda mesh: jax.ShapeDtypeStruct(
            SHAPE, np.float32, sharding=NamedSharding(mesh, P(None, "x"))
        ),
        "ValueError: rank at least 2",
    ),
    "constraint_to_none": (
        lambda _: lax.with_sharding_constraint(numbers(8), None),
        "ValueError: got sharding None",
    ),
    "unconstrained_argument": (
        lambda mesh: jax.jit(abs, in_shardings=NamedSharding(mesh, P(P.UNCONSTRAINED)))(numbers(8)),
        "ValueError: Unconstrained dims are not allowed",
    ),
    "mesh_of_no_devices": (
        lambda _: jax.jit(abs, in_shardings=NamedSharding(empty_mesh(), P()))(numbers(8)),
        "ValueError: empty NamedSharding",
    ),
}
WORDS = [expected.partition(": ")[2] for _, expected in REFUSED.values() if ": " in expected]


def empty_mesh():
    """Return a mesh without axes and devices."""
    return Mesh(np.empty((), object), ())


UNNAMED = deviation(
    "jax<0.4.35",
    params=["axis_without_a_name"],
    outcome="ok",
    reason="the names of axes were not checked",
    issue="jax-ml/jax@801fe87da637",
)
NONE_MEANT_REPLICATED = deviation(
    "jax<0.5.1",
    params=["none_as_spec"],
    outcome="ok",
    reason="None was stored, and meant P()",
    issue="jax-ml/jax@cb188a0cb17d",
)
SPEC_NOT_CHECKED = deviation(
    "jax>=0.5.3,<0.6.1",
    params=["name_as_spec", "tuple_as_spec"],
    outcome="ok",
    reason="the type of the spec was not checked",
)
ATTRIBUTE_OF_SPEC = deviation(
    "jax>=0.6.1,<0.6.2",
    params=["name_as_spec", "tuple_as_spec"],
    outcome="ok",
    reason="an attribute of the spec is read first",
)
ATTRIBUTE_OF_SPEC_AGAIN = deviation(
    "jax>=0.10.1",
    params=["name_as_spec", "tuple_as_spec"],
    outcome="ok",
    reason="an attribute of the spec is read first",
)
RANK_NOT_CHECKED = deviation(
    "jax<0.8.2",
    params=["struct_of_lower_rank"],
    outcome="ok",
    reason="the rank of the sharding was not compared with the shape",
    issue="jax-ml/jax@a99f76f6a655",
)
INTERNAL_UNSPECIFIED = deviation(
    "jax<0.4.36",
    params=["constraint_to_none"],
    outcome="ok",
    reason="None became an internal object, whose attributes were missing",
    issue="jax-ml/jax@987dfaef1c7b",
)
UNCONSTRAINED_TAKEN = deviation(
    "jax<0.6.1",
    params=["unconstrained_argument"],
    outcome="ok",
    reason="UNCONSTRAINED meant None",
    issue="jax-ml/jax@74580607b5dc",
)
NO_FIRST_DEVICE = deviation(
    "jax<0.8.2",
    params=["mesh_of_no_devices"],
    outcome="ok",
    reason="the first device of the mesh is None",
    issue="jax-ml/jax@8d6d5716d3da",
)


@probe(
    source="jax-ml/jax@a99f76f6a655",
    params=[*REFUSED],
    deviations=[
        UNNAMED,
        NONE_MEANT_REPLICATED,
        SPEC_NOT_CHECKED,
        ATTRIBUTE_OF_SPEC,
        ATTRIBUTE_OF_SPEC_AGAIN,
        RANK_NOT_CHECKED,
        INTERNAL_UNSPECIFIED,
        UNCONSTRAINED_TAKEN,
        NO_FIRST_DEVICE,
    ],
)
def refused_argument(env, name):
    """A mesh, spec or sharding that has no meaning is refused where it is passed."""
    call, expected = REFUSED[name]
    return Observed(ending(call, env.mesh(SHARDS, "x"), words=WORDS), expected)


UNHASHABLE_SIZES = deviation(
    "jax<0.4.36",
    params=["nested"],
    outcome="ok",
    reason="the sizes were multiplied without a check",
    issue="jax-ml/jax@456dfeb0aebd",
)
FLOATS_REFUSED = deviation(
    "jax<0.4.36",
    params=["floats"],
    outcome="ok",
    reason="NumPy refuses floats as a shape",
    issue="jax-ml/jax@456dfeb0aebd",
)
SIZES = {
    "nested": (((2,), 2), "ValueError: should be a sequence of ints"),
    "floats": ((2.0, 2.0), "accepted"),
}


@probe(
    source="jax-ml/jax@456dfeb0aebd",
    releases="jax>=0.4.33",
    params=[*SIZES],
    deviations=[UNHASHABLE_SIZES, FLOATS_REFUSED],
)
def sizes_of_a_mesh(env, name):
    """`jax.make_mesh` converts sizes to integers, and refuses those that are none by name."""
    sizes, expected = SIZES[name]
    words = ["should be a sequence of ints", "as an integer", "not supported between"]
    return Observed(
        ending(lambda: jax.make_mesh(sizes, ("x", "y")) and 0, words=words),
        expected,
    )


NOT_AN_ARRAY = deviation(
    "jax<0.6.1",
    params=["number", "list"],
    error="AttributeError",
    match="has no attribute 'shape'",
    reason="the shape of a Python number was read as an attribute",
    issue="jax-ml/jax@4ab810b48359",
)
LEAVES = {
    "number": (lambda: 3.0, lambda x: x),
    "list": (lambda: [1.0, 2.0], sum),
    "numpy": (lambda: numbers(8), lambda x: x.sum()),
}


@probe(source="jax-ml/jax@4ab810b48359", params=[*LEAVES], deviations=[NOT_AN_ARRAY])
def constrained(env, name):
    """`with_sharding_constraint` takes Python numbers, alone or in a list, as it takes arrays."""
    make, total = LEAVES[name]
    sharding = NamedSharding(env.mesh(SHARDS, "x"), P())
    eager = total(lax.with_sharding_constraint(make(), sharding))
    jitted = jax.jit(lambda: total(lax.with_sharding_constraint(make(), sharding)))()
    exact = float(total(make()))
    return Observed({"eager": float(eager), "jit": float(jitted)}, {"eager": exact, "jit": exact})


KEYS_HAVE_WORDS = deviation(
    "jax<0.6.1",
    error="XlaRuntimeError",
    match="Number of tile assignment dimensions",
    reason="the constraint had the rank of the keys, not that of their words",
    issue="jax-ml/jax@a96e175c76e1",
)


@probe(source="jax-ml/jax@a96e175c76e1", deviations=[KEYS_HAVE_WORDS])
def constrained_keys(env):
    """Under jit, typed keys can be constrained to a sharding."""
    sharding = NamedSharding(env.mesh(SHARDS, "x"), P("x"))
    keys = jax.random.split(jax.random.key(0), 8)
    out = jax.jit(lambda keys: lax.with_sharding_constraint(keys, sharding))(keys)
    return Observed(jax.random.key_data(out), np.asarray(jax.random.key_data(keys)))


ZERO_IS_FALSE = deviation(
    "jax>=0.5.3",
    outcome="ok",
    reason="an entry of a spec that is false counts as None",
    issue="jax-ml/jax@177e1f6ed99d",
)


@probe(source="jax-ml/jax@177e1f6ed99d", deviations=[ZERO_IS_FALSE])
def axis_named_zero(env):
    """A mesh axis may be named by an integer. `P(0)` silently shards nothing in later releases."""
    devices = env.mesh(SHARDS, "x").devices
    named = {name: Mesh(devices, (name,)) for name in (0, 1)}
    observed = {
        str(name): list(NamedSharding(mesh, P(name)).shard_shape((8,)))
        for name, mesh in named.items()
    }
    return Observed(observed, {"0": [2], "1": [2]})


CALLERS_ARRAY_FROZEN = deviation(
    "jax>=0.11.2",
    outcome="ok",
    reason="the array of the caller is made read-only",
)


@probe(source="jax-ml/jax@976a4babaa54", deviations=[CALLERS_ARRAY_FROZEN])
def devices_changed_later(env):
    """An array of devices can be changed after a mesh was made of it, which keeps its devices."""
    devices = np.array(env.devices[:SHARDS])
    mesh = Mesh(devices, ("x",))

    def swap():
        devices[0] = devices[1]

    outcome = ending(swap, words=["read-only"])
    ids = [device.id for device in mesh.devices]
    return Observed({"change": outcome, "mesh": ids}, {"change": "accepted", "mesh": [0, 1, 2, 3]})


NO_SIZE = deviation(
    "jax>=0.4.33,<0.10",
    outcome="ok",
    reason="a mesh without axes counted as empty",
)


@probe(source="jax-ml/jax@16eb13e9db05", deviations=[NO_SIZE])
def mesh_of_one_device_without_axes(env):
    """`Mesh(device, ())` has the size 1; from 0.4.33 to 0.9.2 it was 0."""
    mesh = Mesh(np.array(env.devices[0], object), ())
    return Observed({"size": mesh.size}, {"size": 1})


NONE_REFUSED = deviation(
    "jax<0.10",
    error="ValueError",
    match="Expected mesh of type",
    reason="only a mesh was accepted",
    issue="jax-ml/jax@cb26766b3a4f",
)
MANUAL_TAKEN = deviation(
    "jax<0.7.1",
    outcome="ok",
    reason="the types of the axes were not checked",
    issue="jax-ml/jax@50222606cffa",
)


@probe(source="jax-ml/jax@cb26766b3a4f", releases="jax>=0.7.1", deviations=[NONE_REFUSED])
def no_mesh_set(env):
    """`jax.set_mesh(None)` within the context of a mesh leaves it, from 0.10.0 on."""
    with jax.set_mesh(env.mesh(SHARDS, "x")), jax.set_mesh(None):
        devices = len(jax.numpy.zeros(8).sharding.device_set)
    return Observed({"devices": devices}, {"devices": 1})


@probe(source="jax-ml/jax@50222606cffa", releases="jax>=0.6", deviations=[MANUAL_TAKEN])
def manual_mesh_set(env):
    """A mesh with Manual axes cannot be the mesh of the context, from 0.7.1 on."""
    devices = env.mesh(SHARDS, "x").devices
    mesh = Mesh(devices, ("x",), axis_types=(jax.sharding.AxisType.Manual,))

    def enter():
        with contextlib.ExitStack() as stack:
            stack.enter_context(env.compat.set_mesh(mesh))

    return Observed(
        ending(enter, words=["contains manual axes"]), "ValueError: contains manual axes"
    )


LONGER_THAN_THE_RANK = {
    "zeros": lambda: jnp.zeros(8, out_sharding=P("x", None)),
    "product": lambda: jnp.dot(
        np.ones(8, np.float32), np.ones(8, np.float32), out_sharding=P(None)
    ),
    "reshard": lambda: jax.jit(lambda x: reshard(x, P("x", None)))(jnp.zeros(8)),
}
TRAILING_NONE_DROPPED = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="entries of None beyond the rank of the array were dropped",
    issue="jax-ml/jax@653e1d3380d4",
)


@probe(
    source="jax-ml/jax@653e1d3380d4",
    releases="jax>=0.7",
    params=[*LONGER_THAN_THE_RANK],
    deviations=[TRAILING_NONE_DROPPED],
)
def spec_longer_than_the_rank(env, name):
    """On Explicit axes, `P("x", None)` for a vector is a ValueError from 0.11.1 on.

    Before, a None beyond the rank of the array was dropped.
    """
    with env.compat.set_mesh(env.mesh(SHARDS, "x", explicit=True)):
        outcome = ending(LONGER_THAN_THE_RANK[name], words=["equal to aval's ndim"])
    return Observed(outcome, reference="ValueError: equal to aval's ndim")
