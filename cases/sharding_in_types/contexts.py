"""The mesh in context: `with mesh:`, `use_mesh`, `set_mesh`, and functions that accept specs then.

Three ways to set the mesh of a bare PartitionSpec have followed each other. They differ: some
functions accept a spec in only some of these contexts, and from 0.6.0 only the first can be entered
inside `jit`.
"""

from __future__ import annotations

import inspect
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import SHARDS, format_spec, numbers, put

defaults(devices=4, platforms=("cpu",))


USE_MESH_REMOVED = deviation(
    "jax>=0.7.1",
    error="AttributeError",
    match="use_mesh",
    reason="removed in favour of jax.set_mesh, which is both a context and a setter",
    issue="jax-ml/jax@93f7bd0c9290",
)
CONSTRAINT_IGNORED_USE_MESH = deviation(
    "jax>=0.5.0,<0.5.1",
    error="RuntimeError",
    match="requires a non-empty mesh",
    reason="with_sharding_constraint did not read the mesh of use_mesh",
    issue="jax-ml/jax@1079dc4477d4",
)


@probe(
    source="jax-ml/jax@93f7bd0c9290",
    releases="jax>=0.5.0",
    deviations=[USE_MESH_REMOVED, CONSTRAINT_IGNORED_USE_MESH],
)
def use_mesh(env):
    """`with jax.sharding.use_mesh(mesh)` exists from 0.5.0 to 0.7.0; 0.7.1 removed it."""
    with jax.sharding.use_mesh(env.mesh(SHARDS, "x")):
        out = jax.jit(lambda a: lax.with_sharding_constraint(a, P("x")))(numbers(8))
    return Observed(
        {"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": numbers(8)}
    )


WITH_MESH_DEPRECATED = deviation(
    "jax>=0.10.1",
    outcome="ok",
    reason="deprecated in favour of `with jax.set_mesh(mesh):`",
    issue="jax-ml/jax@b3362179c992",
)


@probe(source="jax-ml/jax@b3362179c992", deviations=[WITH_MESH_DEPRECATED])
def with_mesh(env):
    """`with mesh:` gives constraints their mesh on every release, and warns from 0.10.1 on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with env.mesh(SHARDS, "x"):
            out = jax.jit(lambda a: lax.with_sharding_constraint(a, P("x")))(numbers(8))
    deprecated = any(issubclass(w.category, DeprecationWarning) for w in caught)
    return Observed(
        {"shard": list(out.sharding.shard_shape(out.shape)), "deprecated": deprecated},
        {"shard": [2], "deprecated": False},
    )


JIT_TOOK_NO_SPECS = deviation(
    "jax<0.5.3",
    params=["set_mesh"],
    error="RuntimeError",
    match="jax.jit only supports `Sharding`s being passed to in_shardings",
    reason="jit accepted only shardings; pjit accepted specs",
    issue="jax-ml/jax@a67ab9fade34",
)
JIT_TOOK_NO_SPECS_WITH_MESH = deviation(
    "jax<0.7.1",
    params=["with_mesh"],
    error="RuntimeError",
    match="jax.jit only supports `Sharding`s being passed to in_shardings",
    reason="jit accepted only shardings; pjit accepted specs",
    issue="jax-ml/jax@a67ab9fade34",
)
JIT_IGNORES_WITH_MESH = deviation(
    "jax>=0.7.1",
    params=["with_mesh"],
    error="RuntimeError",
    match="jit requires a non-empty mesh in context",
    reason="jit does not read the mesh of the old context",
    issue="jax-ml/jax@93f7bd0c9290",
)


@probe(
    source="jax-ml/jax@76dec382861a",
    params={"set_mesh": {"old": False}, "with_mesh": {"old": True}},
    deviations=[JIT_TOOK_NO_SPECS, JIT_TOOK_NO_SPECS_WITH_MESH, JIT_IGNORES_WITH_MESH],
)
def jit_with_specs(env, old):
    """`jit(f, in_shardings=P("x"))` works under a set mesh from 0.5.3, never under `with mesh:`."""
    mesh = env.mesh(SHARDS, "x")
    with mesh if old else env.compat.set_mesh(mesh):
        out = jax.jit(lambda a: 2 * a, in_shardings=P("x"), out_shardings=P())(numbers(8))
    return Observed(
        {"spec": format_spec(out), "value": out}, {"spec": "[]", "value": 2 * numbers(8)}
    )


DEVICE_PUT_TOOK_NO_SPECS = deviation(
    "jax<0.5.3",
    error="ValueError",
    match="`jax.device_put` only accepts",
    reason="device_put accepted only shardings and devices",
    issue="jax-ml/jax@549973dec67c",
)
DEVICE_PUT_NEEDS_MESH = deviation(
    "jax>=0.5.3",
    params=["no_context"],
    error="ValueError",
    match="Please set a mesh via `jax.(sharding.use|set)_mesh`",
    reason="a spec has no meaning without a mesh",
    issue="jax-ml/jax@549973dec67c",
)


@probe(
    source="jax-ml/jax@549973dec67c",
    params={"context": {"context": True}, "no_context": {"context": False}},
    deviations=[DEVICE_PUT_TOOK_NO_SPECS, DEVICE_PUT_NEEDS_MESH],
)
def device_put_of_a_spec(env, context):
    """`device_put(x, P("x"))` uses the mesh of the context, from 0.5.3."""
    mesh = env.mesh(SHARDS, "x")
    if not context:
        return Observed(format_spec(jax.device_put(numbers(8), P("x"))), "['x']")
    with env.compat.set_mesh(mesh):
        return Observed(format_spec(jax.device_put(numbers(8), P("x"))), "['x']")


MESH_FIXED_UNDER_JIT = deviation(
    "jax>=0.6",
    error="ValueError",
    match="`(use|set)_mesh` can only be used outside of `jax.jit`",
    reason="the mesh is part of the context that jit traces for",
    issue="jax-ml/jax@133a885e3b7a",
)


@probe(
    source="jax-ml/jax@133a885e3b7a",
    releases="jax>=0.5.3",
    deviations=[MESH_FIXED_UNDER_JIT],
)
def mesh_entered_under_jit(env):
    """Entering a mesh inside of `jit` is refused from 0.6.0; enter it around the call."""
    mesh = env.mesh(SHARDS, "x")

    def step(x):
        with env.compat.set_mesh(mesh):
            return 2 * x

    return Observed(jax.jit(step)(numbers(8)), 2 * numbers(8))


CONSTRAINT_NEEDS_MESH = deviation(
    params=["constraint"],
    error="RuntimeError",
    match="with_sharding_constraint requires a non-empty mesh in context",
    reason="a spec has no meaning without a mesh",
    issue="jax-ml/jax@93f7bd0c9290",
)
JIT_NEEDS_MESH = deviation(
    params=["jit"],
    error="RuntimeError",
    match="jit requires a non-empty mesh in context",
    reason="a spec has no meaning without a mesh",
    issue="jax-ml/jax@93f7bd0c9290",
)
RESHARD_NEEDS_MESH = deviation(
    params=["reshard"],
    error="ValueError",
    match="Using PartitionSpec when you are not under a mesh context is not allowed",
    reason="a spec has no meaning without a mesh",
    issue="jax-ml/jax@15cd83ae00d8",
)


@probe(
    source="jax-ml/jax@b92b9b0e2670",
    params={
        "constraint": {"what": "constraint"},
        "jit": {"what": "jit"},
        "reshard": {"what": "reshard"},
    },
    releases="jax>=0.8.2",
    deviations=[CONSTRAINT_NEEDS_MESH, JIT_NEEDS_MESH, RESHARD_NEEDS_MESH],
)
def spec_without_a_mesh(env, what):
    """Three functions refuse a PartitionSpec where no mesh is set: three messages, one remedy."""
    x = put(env.mesh(SHARDS, "x", explicit=True), numbers(8), "x")
    call = {
        "constraint": lambda: lax.with_sharding_constraint(numbers(8), P("x")),
        "jit": lambda: jax.jit(jnp.sin, in_shardings=P("x"))(numbers(8)),
        "reshard": lambda: jax.reshard(x, P()),
    }[what]
    return Observed(call(), numbers(8))


@probe(source="jax-ml/jax@056cde493100", releases="jax>=0.5.3")
def nested_contexts(env):
    """Leaving the inner of two mesh contexts restores the outer mesh, on every release.

    After both, no mesh is set.
    """

    def sizes():
        return dict(jax.sharding.get_abstract_mesh().shape)

    observed = [sizes()]
    with env.compat.set_mesh(env.mesh(4, "x")):
        observed.append(sizes())
        with env.compat.set_mesh(env.mesh((1, 2), ("x", "y"))):
            observed.append(sizes())
        observed.append(sizes())
    observed.append(sizes())
    return Observed(observed, [{}, {"x": 4}, {"x": 1, "y": 2}, {"x": 4}, {}])


@probe(source="jax-ml/jax@056cde493100", releases="jax>=0.7.1")
def mesh_set_for_good(env):
    """`jax.set_mesh(mesh)` as a statement stays in effect, and gives every later spec its mesh."""
    jax.set_mesh(env.mesh(SHARDS, "x"))
    out = jax.jit(lambda a: lax.with_sharding_constraint(a, P("x")))(numbers(8))
    return Observed(
        {"mesh": dict(jax.sharding.get_abstract_mesh().shape), "spec": format_spec(out)},
        {"mesh": {"x": 4}, "spec": "['x']"},
    )


@probe(source="jax-ml/jax@40024b14e97d", releases="jax>=0.8.1")
def concrete_mesh(env):
    """`jax.sharding.get_mesh()`, from 0.8.1, is the mesh with its devices; empty if none is set."""
    mesh = env.mesh(SHARDS, "x")
    before = jax.sharding.get_mesh()
    with jax.set_mesh(mesh):
        current = jax.sharding.get_mesh()
    return Observed(
        {"before": before.empty, "same": current == mesh}, {"before": True, "same": True}
    )


MESH_OF_ARGUMENT_IGNORED = deviation(
    params=["argument"],
    error="ValueError",
    match="The context mesh cannot be empty",
    reason="a mesh must be given or set; shard_map does not read the mesh of an argument",
    issue="jax-ml/jax@6fc9e17a9e7d",
)


@probe(
    source="jax-ml/jax@6fc9e17a9e7d",
    releases="jax>=0.6.1",
    params={"context": {"context": True}, "argument": {"context": False}},
    deviations=[MESH_OF_ARGUMENT_IGNORED],
)
def shard_map_without_a_mesh(env, context):
    """`jax.shard_map` finds its mesh in the context from 0.6.1, never in its argument."""
    total = jax.shard_map(lambda u: lax.psum(u, "x"), in_specs=P("x"), out_specs=P())
    mesh = env.mesh(SHARDS, "x")
    if context:
        with env.compat.set_mesh(mesh):
            out = total(numbers(8))
    else:
        out = total(put(mesh, numbers(8), "x"))
    return Observed(out, numbers(4, 2).sum(0))


@probe(
    source="jax-ml/jax@d78c899e6115",
    devices=1,
    records="the signature is up to JAX",
    releases="jax>=0.4.35",
)
def signature_of_make_mesh(env):
    """Users pass the parameters of `make_mesh` by keyword, so their names matter.

    No reference: the names are the observation.
    """
    return [*inspect.signature(jax.make_mesh).parameters]


@probe(source="jax-ml/jax@a28803636255")
def equality_of_shardings(env):
    """NamedShardings are equal by mesh and spec as written, equivalent by placement of shards."""
    mesh = env.mesh(SHARDS, "x")
    first, second = NamedSharding(mesh, P("x")), NamedSharding(env.mesh(SHARDS, "x"), P("x"))
    padded = NamedSharding(mesh, P("x", None))
    reverse = NamedSharding(jax.sharding.Mesh(np.array(env.devices[:4][::-1]), ("x",)), P("x"))
    return Observed(
        {
            "same": (first == second, hash(first) == hash(second)),
            "padded": (first == padded, first.is_equivalent_to(padded, 2)),
            "turned": (first == reverse, first.is_equivalent_to(reverse, 2)),
            "by_other_axis": first.is_equivalent_to(NamedSharding(mesh, P(None, "x")), 2),
        },
        {
            "same": (True, True),
            "padded": (False, True),
            "turned": (False, False),
            "by_other_axis": False,
        },
    )


SET_FOR_ALL_THREADS = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="set_mesh set the mesh of the process",
    issue="jax-ml/jax@30be6f3b5554",
)


def read_axes(axes):
    """Append the names of the axes of the mesh in context."""
    axes.append(list(jax.sharding.get_abstract_mesh().axis_names))


@probe(source="jax-ml/jax@30be6f3b5554", releases="jax>=0.5.3", deviations=[SET_FOR_ALL_THREADS])
def mesh_in_another_thread(env):
    """A thread that starts after `set_mesh(mesh)` silently has no mesh, from 0.6.1 on."""
    axes = []
    set_mesh = getattr(jax, "set_mesh", None) or jax.sharding.set_mesh
    token = set_mesh(env.mesh(SHARDS, "x"))
    read_axes(axes)
    thread = threading.Thread(target=read_axes, args=[axes])
    thread.start()
    thread.join()
    if token is None:
        set_mesh(None)
    else:
        token.__exit__(None, None, None)
    return Observed(axes, reference=[["x"], []])
