"""Arrays on Explicit axes: the shardings of results, and the operations that are refused.

The types follow rules that a person can apply: a reduced axis disappears, a kept axis keeps its
sharding, and an operation that would need a collective is refused until `out_sharding=` requests
it. The rules were filled in over a year and some were taken back: results that needed a silent
gather became errors.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program, raises

from ._helpers import SHARDS, describe_outcome, format_spec, numbers, put, reshard

defaults(devices=4)

TYPE_PRINTED_WITH_CLASS = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="a type was printed with the name of its class",
    issue="jax-ml/jax@3a26804c6848",
)


@probe(
    source="jax-ml/jax@3a26804c6848",
    platforms=("cpu",),
    releases="jax>=0.5.3",
    deviations=[TYPE_PRINTED_WITH_CLASS],
)
def printed_type(env):
    """`jax.typeof(x)` shows the sharding, `float32[8@x]`, and omits it where axes are Auto."""
    mesh, auto = env.mesh((2, 2), ("x", "y"), explicit=True), env.mesh((2, 2), ("x", "y"))
    return Observed(
        {
            "rows": str(jax.typeof(put(mesh, numbers(8), "x"))),
            "both": str(jax.typeof(put(mesh, numbers(4, 4), "x", "y"))),
            "together": str(jax.typeof(put(mesh, numbers(4, 4), ("x", "y")))),
            "nowhere": str(jax.typeof(put(mesh, numbers(8)))),
            "auto": str(jax.typeof(put(auto, numbers(8), "x"))),
        },
        {
            "rows": "float32[8@x]",
            "both": "float32[4@x,4@y]",
            "together": "float32[4@(x,y),4]",
            "nowhere": "float32[8]",
            "auto": "float32[8]",
        },
    )


RULES = {
    "transpose": (lambda m: m.T, "[None, 'x']"),
    "sum_over_it": (lambda m: m.sum(0), "[]"),
    "sum_over_other": (lambda m: m.sum(1), "['x']"),
    "broadcast": (lambda m: m[:, None, :] + m[:, :, None], "['x']"),
    "row": (lambda m: m[:, 2], "['x']"),
    "split_axis": (lambda m: m.reshape(4, 2, 4), "['x']"),
    "merge_axes": (lambda m: m.reshape(32), "['x']"),
    "argmax": (lambda m: m.argmax(1).astype(np.int32), "['x']"),
    "concatenate": (lambda m: jnp.concatenate([m, m], 1), "['x']"),
    "where": (lambda m: jnp.where(m > 3, m, 0), "['x']"),
    "sort_rows": (lambda m: jnp.sort(m[:, ::-1], axis=1), "['x']"),
    "zeros_like": (jnp.zeros_like, "['x']"),
    "vmap": (jax.vmap(lambda v: v @ v), "['x']"),
}
"""Functions of an array with rows over x, and the specs of their results."""


@probe(source="jax-ml/jax#28542", platforms=("cpu",), releases="jax>=0.6.1")
def rules(env):
    """Operations on rows over x give results with the expected specs, and the numbers of NumPy."""
    mesh, m = env.mesh(SHARDS, "x", explicit=True), numbers(8, 4)
    with env.compat.set_mesh(mesh):
        program = jax.jit(lambda m: {name: fn(m) for name, (fn, _) in RULES.items()})
        results = program(put(mesh, m, "x"))
    by_numpy = {
        "concatenate": np.concatenate([m, m], 1),
        "where": np.where(m > 3, m, 0),
        "sort_rows": m,
        "zeros_like": 0 * m,
        "vmap": (m * m).sum(1),
    }
    exact = {name: by_numpy[name] if name in by_numpy else fn(m) for name, (fn, _) in RULES.items()}
    return Observed(
        {"specs": {name: format_spec(out) for name, out in results.items()}, "values": results},
        {"specs": {name: spec for name, (_, spec) in RULES.items()}, "values": exact},
    )


CONSTANT_HAD_NO_MESH = deviation(
    "jax<0.7",
    error="ShardingTypeError",
    match="Mesh of both lhs and rhs should match",
    reason="the type of a constant had no mesh, and a product required equal meshes",
    issue="jax-ml/jax#29683",
)


@probe(
    source="jax-ml/jax#29683",
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[CONSTANT_HAD_NO_MESH],
)
def product_with_a_constant(env):
    """Rows over x times a constant that is made under the mesh are rows over x, from 0.7.0."""
    mesh, m = env.mesh(SHARDS, "x", explicit=True), numbers(8, 4)
    with env.compat.set_mesh(mesh):
        out = jax.jit(lambda m: m @ jnp.ones((4, 3)))(put(mesh, m, "x"))
    exact = np.tile(m.sum(1, keepdims=True), (1, 3))
    return Observed({"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": exact})


REFUSED = {
    "contracted": (lambda m: m.T @ m, "Contracting dimensions are sharded"),
    "gather": (lambda m: m[np.array([5, 2])], r"\.get\(out_sharding=\)"),
    "scatter": (lambda m: m.at[1].set(0), r"\.set/add/mul/...\(out_sharding=\)"),
    "odd_split": (lambda m: m.reshape(2, 16), "This reshape is not supported"),
    "sort": (lambda m: jnp.sort(m, axis=0), "must be unsharded over the sorting dimension"),
    "cumsum": (lambda m: jnp.cumsum(m, axis=0), "should be unsharded over the axis"),
    "top_k": (lambda m: lax.top_k(m.T, 4)[0], "should be unsharded over the axis"),
    "concatenate": (
        lambda m: jnp.concatenate([m, m.sum(0)[None]]),
        "should have the same sharding",
    ),
    "broadcast": (lambda m: m[:4] + m[:4].T, "incompatible shardings|illegally sharded"),
    "batch_of_a_dot": (
        lambda m: jnp.einsum("bi,bi->b", m, numbers(8, 4)),
        "batch dimensions to have the same sharding",
    ),
}


GATHERED_SILENTLY = deviation(
    "jax<0.7",
    params=["gather"],
    outcome="ok",
    reason="gathered silently; each device held the whole result",
    issue="jax-ml/jax@4119d5365ada",
)
UPDATE_KEPT_SHARDING = deviation(
    "jax<0.7.1",
    params=["scatter"],
    outcome="ok",
    reason="the result took the sharding of the updated array",
    issue="jax-ml/jax@f92afeef4f89",
)
SORTED_AFTER_GATHER = deviation(
    "jax<0.9.2",
    params=["sort"],
    outcome="ok",
    reason="sorted after a silent gather",
    issue="jax-ml/jax@acbca16beaa4",
)
SUMMED_WITH_COMMUNICATION = deviation(
    "jax<0.10",
    params=["cumsum"],
    outcome="ok",
    reason="summed with silent communication",
    issue="jax-ml/jax@f512fd2b5298",
)
TOP_K_AFTER_GATHER = deviation(
    "jax<0.10",
    params=["top_k"],
    outcome="ok",
    reason="selected after a silent gather",
    issue="jax-ml/jax@521fa8b94e7e",
)
BATCH_CONSTANT_HAD_NO_MESH = deviation(
    "jax<0.7",
    params=["batch_of_a_dot"],
    error="ShardingTypeError",
    match="Mesh of both lhs and rhs should match",
    reason="the type of a constant had no mesh, and a product required equal meshes",
    issue="jax-ml/jax#29683",
)
BATCH_SHARDING_INFERRED = deviation(
    "jax>=0.7,<0.11.1",
    params=["batch_of_a_dot"],
    outcome="ok",
    reason="a sharding missing from one operand was taken from the other",
    issue="jax-ml/jax@a8976b506998",
)


@program(
    source="jax-ml/jax@c7d6b653cea5",
    platforms=("cpu",),
    releases="jax>=0.6.1",
    params={
        "contracted": {"what": "contracted"},
        "gather": {"what": "gather"},
        "scatter": {"what": "scatter"},
        "odd_split": {"what": "odd_split"},
        "sort": {"what": "sort"},
        "cumsum": {"what": "cumsum"},
        "top_k": {"what": "top_k"},
        "concatenate": {"what": "concatenate"},
        "broadcast": {"what": "broadcast"},
        "batch_of_a_dot": {"what": "batch_of_a_dot"},
    },
    deviations=[
        GATHERED_SILENTLY,
        UPDATE_KEPT_SHARDING,
        SORTED_AFTER_GATHER,
        SUMMED_WITH_COMMUNICATION,
        TOP_K_AFTER_GATHER,
        BATCH_CONSTANT_HAD_NO_MESH,
        BATCH_SHARDING_INFERRED,
    ],
)
def refused(env, what):
    """Operations that need a collective and do not request it raise a ShardingTypeError.

    The message explains it. `out_sharding=` (of `einsum`, `.at[].get`, `lax.reshape` ...) or a
    `jax.reshard` before the operation selects the sharding of the result. Some of these operations
    ran first, with the collective inside.
    """
    fn, match = REFUSED[what]
    mesh = env.mesh(SHARDS, "x", explicit=True)
    refusal = raises("ShardingTypeError", match=match)
    return Program(fn, args=(put(mesh, numbers(8, 4), "x"),), reference=refusal)


NO_SHARDING_TYPE_ERROR = deviation(
    "jax<0.6",
    error="TypeError",
    match="contracting dimensions to have consistent sharding",
    reason="there was no class for sharding errors",
    issue="jax-ml/jax@c7d6b653cea5",
)


@program(
    source="jax-ml/jax@c7d6b653cea5",
    platforms=("cpu",),
    releases="jax>=0.5.3",
    deviations=[NO_SHARDING_TYPE_ERROR],
)
def class_of_the_error(env):
    """Errors of shardings in types have a separate class, ShardingTypeError, from 0.6.0."""
    mesh = env.mesh((2, 2), ("x", "y"), explicit=True)
    args = (put(mesh, numbers(4, 4), None, "x"), put(mesh, numbers(4, 4), "y"))
    consistent = "contracting dimensions to have consistent sharding|Contracting dimensions are"
    return Program(jnp.matmul, args=args, reference=raises("ShardingTypeError", match=consistent))


@program(
    source="jax-ml/jax@3848f0d2ac55",
    releases="jax>=0.6.1",
    params={"replicated": {"out": ()}, "rows": {"out": ("x",)}},
)
def contraction_with_out_sharding(env, out):
    """`einsum(..., out_sharding=)` over a contracted axis sums once, into that sharding."""
    mesh = env.mesh(SHARDS, "x", explicit=True)
    a, b = numbers(4, 8) / 8, numbers(8, 4) / 8
    target = NamedSharding(mesh, P(*out))

    def layer(a, b):
        return jnp.einsum("ij,jk->ik", a, b, out_sharding=target)

    by_columns, by_rows = NamedSharding(mesh, P(None, "x")), NamedSharding(mesh, P("x", None))
    return Program(
        layer,
        args=(env.put(a, by_columns), env.put(b, by_rows)),
        reference=lambda a, b: a.astype(np.float64) @ b,
    )


@program(source="jax-ml/jax@0d2faf581bea", releases="jax>=0.7")
def resharded(env):
    """`reshard` from rows to columns, in the middle of a program, is one all-to-all or gather."""
    mesh = env.mesh(SHARDS, "x", explicit=True)
    columns = NamedSharding(mesh, P(None, "x"))

    def step(m):
        return reshard(m + 1, columns).sum(0)

    by_rows = NamedSharding(mesh, P("x", None))
    return Program(
        step, args=(env.put(numbers(8, 4), by_rows),), reference=lambda m: (m + 1).sum(0)
    )


@probe(
    source="jax-ml/jax@7b342dc925f2",
    devices=1,
    records="the public names are up to JAX",
    platforms=("cpu",),
    releases="jax>=0.5.3",
)
def where_reshard_lives(env):
    """`reshard` is in `jax.experimental.shard`, `jax.sharding` or `jax`, depending on the release.

    No reference: the names that exist are the observation.
    """
    return {
        "jax.experimental.shard": describe_outcome(
            lambda: __import__("jax.experimental.shard") and True, 2
        ),
        "jax.sharding": hasattr(jax.sharding, "reshard"),
        "jax": hasattr(jax, "reshard"),
    }


CONSTRAINT_REFUSED = deviation(
    "jax<0.7.1",
    params=["same"],
    error="ValueError",
    match="can only refer to Auto axes",
    reason="no constraint was allowed on Explicit axes",
    issue="jax-ml/jax@005c14b4da9d",
)
EMPTY_CONSTRAINT_REFUSED = deviation(
    "jax>=0.6.2,<0.7.1",
    params=["other"],
    error="ValueError",
    match="cannot be used when all axes of the mesh are of type `Explicit`",
    reason="no constraint was allowed on Explicit axes",
    issue="jax-ml/jax@210b5fc8674e",
)
CONSTRAINT_IS_AN_ASSERTION = deviation(
    "jax>=0.7.1",
    params=["other"],
    error="AssertionError",
    match="did not match the sharding provided",
    reason="a constraint asserts a sharding from 0.7.1; jax.reshard changes it",
    issue="jax-ml/jax@ad8f28dcbde5",
)


@probe(
    source="jax-ml/jax@ad8f28dcbde5",
    platforms=("cpu",),
    releases="jax>=0.5.3",
    params={"same": {"spec": ("x",)}, "other": {"spec": ()}},
    deviations=[CONSTRAINT_REFUSED, EMPTY_CONSTRAINT_REFUSED, CONSTRAINT_IS_AN_ASSERTION],
)
def constraint_as_assertion(env, spec):
    """`with_sharding_constraint` on Explicit axes is an error, and from 0.7.1 an assertion.

    A constraint to `P()` was accepted up to 0.6.1, and gathered the array.
    """
    mesh = env.mesh(SHARDS, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        out = lax.with_sharding_constraint(put(mesh, numbers(8), "x"), P(*spec))
    return Observed(
        {"spec": format_spec(out), "value": out}, {"spec": str([*spec]), "value": numbers(8)}
    )


REQUIRED_OUTSIDE_OF_JIT = deviation(
    "jax>=0.7",
    error="ShardingTypeError",
    match=r"\.get\(out_sharding=\)",
    reason="the sharding of the result must be given outside of jit, too",
    issue="jax-ml/jax@4119d5365ada",
)


@probe(
    source="jax-ml/jax@4119d5365ada",
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[REQUIRED_OUTSIDE_OF_JIT],
)
def element_of_a_sharded_array(env):
    """`x[3]` of an array on Explicit axes, at the prompt, is an error from 0.7.0.

    Write `x.at[3].get(out_sharding=P())`, or `np.asarray(x)[3]` to look at it.
    """
    return Observed(put(env.mesh(SHARDS, "x", explicit=True), numbers(8), "x")[3], np.float32(3))


MESH_AXIS_OF_ONE_DROPPED = deviation(
    "jax>=0.11,<0.11.1",
    outcome="ok",
    reason="the new rule of reshape dropped a mesh axis of size 1",
    issue="jax-ml/jax#39309",
)


@probe(
    source="jax-ml/jax#39309",
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[MESH_AXIS_OF_ONE_DROPPED],
)
def reshape_beside_an_axis_of_one(env):
    """A reshape of rows over a mesh axis of size 1 lost that axis from its type in 0.11.0.

    Nothing moves, but the type differs, and a `concatenate` with the old type is refused.
    """
    mesh = env.mesh((1, 4), ("data", "tensor"), explicit=True)
    with env.compat.set_mesh(mesh):
        out = jax.jit(lambda x: x.reshape(-1, 4, 2))(put(mesh, numbers(1, 8), "data", "tensor"))
    return Observed(format_spec(out), "['data', 'tensor']")


@probe(source="jax-ml/jax@2202f95151d5", platforms=("cpu",), releases="jax>=0.6.1")
def gradient(env):
    """A gradient has the sharding of its argument: unsharded for weights, in rows for rows."""
    mesh = env.mesh(SHARDS, "x", explicit=True)
    w, x = numbers(4) / 4, numbers(8, 4) / 8
    args = (put(mesh, w), put(mesh, x, "x"))
    with env.compat.set_mesh(mesh):
        loss = lambda w, x: ((x @ w) ** 2).sum()  # noqa: E731 - short
        by_weights, by_rows = jax.jit(jax.grad(loss, (0, 1)))(*args)
    x, w = x.astype(np.float64), w.astype(np.float64)
    return Observed(
        {"specs": [format_spec(by_weights), format_spec(by_rows)], "values": [by_weights, by_rows]},
        {"specs": ["[]", "['x']"], "values": [2 * x.T @ (x @ w), 2 * np.outer(x @ w, w)]},
    )


COTANGENT_SHARDING_UNCHECKED = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="the sharding of a cotangent was not compared with that of its output",
    issue="jax-ml/jax@821af340512f",
)


@program(
    source="jax-ml/jax@821af340512f",
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[COTANGENT_SHARDING_UNCHECKED],
)
def cotangent_of_another_sharding(env):
    """An unsharded cotangent of an output in rows is refused from 0.7.2."""
    mesh = env.mesh(SHARDS, "x", explicit=True)
    refusal = raises(
        "ValueError", match="unexpected JAX type .* for argument to (vjp|VJP) function"
    )
    return Program(
        lambda x, ct: jax.vjp(lambda a: 2 * a, x)[1](ct)[0],
        args=(put(mesh, numbers(8), "x"), put(mesh, numbers(8))),
        reference=refusal,
    )
