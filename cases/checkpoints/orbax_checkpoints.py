"""Orbax checkpoints, with the Orbax that is current at the time of each release."""

from __future__ import annotations

import difflib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._content import make_key, make_target, numbers
from ._loading import EQUAL, compare, compare_trees, extract, outcome
from ._orbax import make_folder, restore, save

defaults(platforms=("cpu",), requires=["orbax-checkpoint"])

WRITERS = ("0.4.30", "0.6.2", "0.12.0.1")
"""Releases whose checkpoints are restored; with Orbax 0.5.17, 0.11.16 and 0.12.8."""
DTYPES = ("float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "bool", "complex64")


@probe(source="google/orbax#1105")
def orbax_dtypes(env):
    """A restored array has the dtype and bits of the array, for every dtype."""
    tree = {dtype: jax.device_put(numbers(dtype)) for dtype in DTYPES}
    with make_folder() as folder:
        return Observed(compare_trees(restore(save(tree, folder)), tree), EQUAL)


@probe(source="google/orbax#332", devices=4)
def orbax_shardings(env):
    """A split array is restored with the sharding of the target, or of the writer without one."""
    devices = np.array(jax.devices())
    square = Mesh(devices.reshape(2, 2), ("x", "y"))
    rows = NamedSharding(Mesh(devices, ("x",)), P("x"))
    shardings = {
        "other_mesh": NamedSharding(square, P("y", "x")),
        "fewer_devices": NamedSharding(Mesh(devices[:2], ("x",)), P(None, "x")),
        "one_device": SingleDeviceSharding(devices[3]),
    }
    target = {
        name: jax.ShapeDtypeStruct((4, 2), jnp.float32, sharding=sharding)
        for name, sharding in shardings.items()
    }
    array = jax.device_put(numbers(), rows)
    with make_folder() as folder:
        path = save(dict.fromkeys(target, array), folder)
        onto, without = restore(path, target), restore(path)
    observed = {
        name: [compare(onto[name], array), onto[name].sharding == sharding]
        for name, sharding in shardings.items()
    }
    first = without["other_mesh"]
    observed["without_a_target"] = [compare(first, array), first.sharding == rows]
    return Observed(observed, {name: [EQUAL, True] for name in observed})


PADDED = deviation(
    "jax<0.4.36",
    params=["with_a_sharding"],
    outcome="ok",
    reason="Orbax up to 0.7.0 silently pads the array with zeros, or truncates it",
    issue="google/orbax@77058c37e31c",
)
SHAPE_IGNORED = deviation(
    "jax<0.9.1",
    params=["without"],
    outcome="ok",
    reason="Orbax before 0.11.33 restores the stored shape and ignores that of the target",
    issue="google/orbax@4bcd5b2cd1a0",
)


@probe(
    source="google/orbax#2972",
    params=["with_a_sharding", "without"],
    deviations=[PADDED, SHAPE_IGNORED],
)
def orbax_target_of_another_shape(env, name):
    """A target with a larger or smaller shape than that of the stored array is a ValueError."""
    sharding = SingleDeviceSharding(jax.devices()[0]) if name == "with_a_sharding" else None
    observed = {}
    with make_folder() as folder:
        path = save({"a": jax.device_put(numbers())}, folder)
        for key, shape in {"larger": (5, 2), "smaller": (2, 2)}.items():
            target = jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)
            found = outcome(lambda target=target: np.asarray(restore(path, {"a": target})["a"]))
            observed[key] = found.partition(":")[0] if isinstance(found, str) else found
    return Observed(observed, dict.fromkeys(observed, "ValueError"))


KEYS_NOT_SAVED = deviation(
    "jax<0.5.3",
    outcome="ok",
    reason="Orbax before 0.11.10 does not save typed keys",
    issue="google/orbax@a68956329426",
)
KEYS_NOT_IN_TARGETS = deviation(
    "jax>=0.5.3,<0.6.2",
    outcome="ok",
    match="with_a_target",
    reason="Orbax before 0.11.16 restores typed keys only without a target",
    issue="google/orbax@a8026b2d0672",
)


@probe(source="google/orbax#620", deviations=[KEYS_NOT_SAVED, KEYS_NOT_IN_TARGETS])
def orbax_typed_keys(env):
    """Typed keys are saved, and restored with and without a target."""
    keys = {"k": jax.jit(make_key)()}
    with make_folder() as folder:
        path = outcome(lambda: save(keys, folder))
        if isinstance(path, str):
            return Observed({"saved": path}, {"saved": EQUAL})
        observed = {
            "without_a_target": outcome(lambda: compare_trees(restore(path), keys)),
            "with_a_target": outcome(lambda: compare_trees(restore(path, keys), keys)),
        }
    return Observed({"saved": EQUAL, **observed}, dict.fromkeys(["saved", *observed], EQUAL))


@probe(source="google/orbax#1105")
def orbax_containers(env):
    """With a target, named tuples, tuples, integer keys, None and scalars are restored.

    Without one, tuples are lists, named tuples are dictionaries, and keys are strings.
    """
    leaf = jax.device_put(numbers())
    tree = {
        "named": difflib.Match(leaf, 2, 2.5),
        "pair": (leaf, [leaf]),
        "none": None,
        "empty": [],
        "keys": {3: True},
    }
    plain = {
        "named": {"a": leaf, "b": 2, "size": 2.5},
        "pair": [leaf, [leaf]],
        "none": None,
        "empty": [],
        "keys": {"3": True},
    }
    with make_folder() as folder:
        path = save(tree, folder)
        observed = {
            "with_a_target": outcome(lambda: compare_trees(restore(path, tree), tree)),
            "without_a_target": outcome(lambda: compare_trees(restore(path), plain)),
        }
    return Observed(observed, dict.fromkeys(observed, EQUAL))


ZERO_SIZE_REFUSED = deviation(
    "jax>=0.4.33",
    outcome="ok",
    reason="Orbax from 0.6 on checks that a file of data exists, or refuses such arrays",
    issue="google/orbax#1309",
)


@probe(source="google/orbax#2587", deviations=[ZERO_SIZE_REFUSED])
def orbax_zero_size(env):
    """An array without elements is saved and restored."""
    tree = {"a": jax.device_put(np.zeros((0, 3), np.float32))}
    with make_folder() as folder:
        found = outcome(lambda: compare_trees(restore(save(tree, folder)), tree))
    observed = found.partition(" in checkpoint")[0].partition(": ParamInfo")[0]
    return Observed(observed, EQUAL)


def make_abstract_state():
    """Return the target of a state whose kernel is split over a mesh of all devices."""
    devices = np.array(jax.devices())
    mesh = Mesh(devices.reshape(2, devices.size // 2), ("x", "y"))
    target = make_target()
    target["params"]["kernel"] = jax.ShapeDtypeStruct(
        (4, 2), jnp.float32, sharding=NamedSharding(mesh, P("x", "y"))
    )
    return target


STRUCTURE_NOT_FOUND = deviation(
    "jax<0.4.31",
    outcome="ok",
    match="structure file does not exist",
    reason="Orbax 0.5.17 reads a file of the structure that Orbax 0.11 does not write",
)


@probe(source="google/orbax#648", devices=4, deviations=[STRUCTURE_NOT_FOUND])
def orbax_of_other_releases(env):
    """A state that another release saved is restored onto another mesh."""
    observed = {}
    for writer in WRITERS:
        path = extract(writer, "orbax")
        observed[writer] = outcome(
            lambda path=path: compare_trees(restore(path, make_abstract_state()), make_target())
        )
    return Observed(observed, dict.fromkeys(WRITERS, EQUAL))


@probe(source="google/orbax#648", devices=2, deviations=[STRUCTURE_NOT_FOUND])
def orbax_on_fewer_devices(env):
    """A state that was saved on four devices is restored on two, onto a mesh of the target.

    Without a target it is a ValueError: the devices of the stored sharding are missing.
    """
    observed = {}
    for writer in WRITERS:
        path = extract(writer, "orbax")
        onto = outcome(
            lambda path=path: compare_trees(restore(path, make_abstract_state()), make_target())
        )
        without = outcome(lambda path=path: compare_trees(restore(path), make_target()))
        without = without if without == EQUAL else without.partition(":")[0]
        observed[writer] = {"with_a_target": onto, "without_a_target": without}
    exact = {"with_a_target": EQUAL, "without_a_target": "ValueError"}
    return Observed(observed, dict.fromkeys(WRITERS, exact))
