"""`jax.make_mesh` without axis types: Auto axes up to 0.8.3, Explicit axes from 0.9.0.

With Explicit axes the sharding of an array is part of its type, and communication must be
requested. So a script that made its mesh by `jax.make_mesh((4,), ("x",))` and left the rest to the
compiler raises from 0.9.0 on, in ordinary lines: a slice, a dot, an update. The programs in this
file are such lines. Their meaning never changed, so the refusal is the deviation.
`axis_types=(AxisType.Auto,)` restores the earlier behaviour, on every release from 0.5.3.
"""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program

from ._helpers import SHARDS, numbers, put

defaults(devices=4)


def make_default_mesh(env, shape=(SHARDS,), names=("x",)):
    """Return the mesh that `jax.make_mesh` makes without axis types."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return jax.make_mesh(shape, names, devices=env.devices[: int(np.prod(shape))])


AXES_WERE_AUTO = deviation(
    "jax<0.9",
    outcome="ok",
    reason="the axes were Auto: the compiler chose shardings",
    issue="jax-ml/jax@89401bd3143e",
)


@probe(
    source="jax-ml/jax@89401bd3143e",
    platforms=("cpu",),
    releases="jax>=0.5.3",
    deviations=[AXES_WERE_AUTO],
)
def default_axis_types(env):
    """`make_mesh` makes Auto axes up to 0.8.3 and Explicit axes from 0.9.0.

    0.8.1 to 0.8.3 warn of the change with a DeprecationWarning; 0.9.0 does not warn.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mesh = jax.make_mesh((2, 2), ("x", "y"), devices=env.devices[:4])
    return Observed(
        {
            "types": [kind.name for kind in mesh.axis_types],
            "warned": any("default axis_types will change" in str(w.message) for w in caught),
        },
        {"types": ["Explicit", "Explicit"], "warned": False},
    )


@probe(source="jax-ml/jax@89401bd3143e", platforms=("cpu",), releases="jax>=0.5.3")
def mesh_itself_stays_auto(env):
    """The axes of `jax.sharding.Mesh(...)` are Auto on every release: its default stayed."""
    mesh = jax.sharding.Mesh(np.array(env.devices[:4]), ("x",))
    return Observed([kind.name for kind in mesh.axis_types], ["Auto"])


LINES = {
    "strided_slice": (lambda x: x[::2], ("x",)),
    "odd_slice": (lambda x: x[:3], ("x",)),
    "fancy_index": (lambda x: x[np.array([5, 2])], ("x",)),
    "update": (lambda x: x.at[1].set(9), ("x",)),
    "outer": (lambda x: x[:, None] * x[None, :], ("x",)),
    "reverse": (lambda x: x[::-1], ("x",)),
    "sum": (lambda x: x.sum(), ("x",)),
    "argmax": (lambda x: x.argmax().astype(np.int32), ("x",)),
}


STRIDED_SLICE_WAS_A_GATHER = deviation(
    "jax>=0.9,<0.9.1",
    params=["strided_slice"],
    error="ShardingTypeError",
    match=r"out sharding could not be resolved",
    reason="a slice with a stride was a gather in these releases",
    issue="jax-ml/jax@89401bd3143e",
)
UNEVEN_SLICE = deviation(
    "jax>=0.9",
    params=["odd_slice"],
    error="ShardingTypeError",
    match="slicing on sharded dims where out dim .* is not divisible",
    reason="three elements cannot be divided among four devices",
    issue="jax-ml/jax@89401bd3143e",
)
RESULT_SHARDING_REQUIRED = deviation(
    "jax>=0.9",
    params=["fancy_index", "update"],
    error="ShardingTypeError",
    match=r"Use `.at\[...\].(get|set/add/mul/...)\(out_sharding=\)`",
    reason="the sharding of the result must be given",
    issue="jax-ml/jax@89401bd3143e",
)
BOTH_AXES_OVER_X = deviation(
    "jax>=0.9",
    params=["outer"],
    error="ShardingTypeError",
    match="produces an illegally sharded result",
    reason="both axes of the product would be sharded over x",
    issue="jax-ml/jax@89401bd3143e",
)


@program(
    source="jax-ml/jax@89401bd3143e",
    platforms=("cpu",),
    releases="jax>=0.4.35",
    params={
        "strided_slice": {"line": "strided_slice"},
        "odd_slice": {"line": "odd_slice"},
        "fancy_index": {"line": "fancy_index"},
        "update": {"line": "update"},
        "outer": {"line": "outer"},
        "reverse": {"line": "reverse"},
        "sum": {"line": "sum"},
        "argmax": {"line": "argmax"},
    },
    deviations=[
        STRIDED_SLICE_WAS_A_GATHER,
        UNEVEN_SLICE,
        RESULT_SHARDING_REQUIRED,
        BOTH_AXES_OVER_X,
    ],
)
def ordinary_line(env, line):
    """Of eight lines of NumPy on an array of a default `make_mesh`, five raise in 0.9.0.

    From 0.9.1 the strided slice runs again. A line that reduces, reverses or leaves elements in
    place has one meaning for types, too, and runs.
    """
    fn, spec = LINES[line]
    return Program(
        fn, args=(put(make_default_mesh(env), numbers(8), *spec),), reference=get_numpy_line(line)
    )


def get_numpy_line(line):
    """Return the line as a function of a NumPy array."""
    if line == "update":
        return lambda x: np.concatenate([x[:1], [np.float32(9)], x[2:]])
    return LINES[line][0]


SHARDING_OF_SUM_AMBIGUOUS = deviation(
    "jax>=0.9",
    params=["contracted"],
    error="ShardingTypeError",
    match="Contracting dimensions are sharded",
    reason="the sum may be put anywhere: out_sharding= must be given",
    issue="jax-ml/jax@89401bd3143e",
)
ROWS_AND_COLUMNS_OVER_X = deviation(
    "jax>=0.9",
    params=["both_rows"],
    error="ShardingTypeError",
    match="produces an illegally sharded result",
    reason="rows and columns of the result would both be sharded over x",
    issue="jax-ml/jax@89401bd3143e",
)


@program(
    source="jax-ml/jax@89401bd3143e",
    platforms=("cpu",),
    releases="jax>=0.4.35",
    params={
        "contracted": {"specs": ((None, "x"), ("x", None))},
        "both_rows": {"specs": (("x", None), (None, "x"))},
        "one_side": {"specs": ((None, "x"), (None, None))},
        "rows": {"specs": (("x", None), (None, None))},
    },
    deviations=[SHARDING_OF_SUM_AMBIGUOUS, ROWS_AND_COLUMNS_OVER_X],
)
def matrix_product(env, specs):
    """`a @ b` on a default mesh: tensor-parallel raises from 0.9.0, data-parallel runs."""
    mesh = make_default_mesh(env)
    a, b = numbers(4, 8) / 8, numbers(8, 4) / 8
    args = (put(mesh, a, *specs[0]), put(mesh, b, *specs[1]))
    return Program(jnp.matmul, args=args, reference=lambda a, b: a.astype(np.float64) @ b)


SCANNED_AXIS_SHARDED = deviation(
    "jax>=0.9",
    error="ValueError",
    match="0th dimension of all xs should be replicated",
    reason="the axis that scan runs over must not be sharded",
    issue="jax-ml/jax@89401bd3143e",
)


@program(
    source="jax-ml/jax@89401bd3143e",
    platforms=("cpu",),
    releases="jax>=0.4.35",
    deviations=[SCANNED_AXIS_SHARDED],
)
def scan_over_sharded_rows(env):
    """`lax.scan` over sharded rows is refused from 0.9.0: the rows must be gathered first."""

    def running(rows):
        return lax.scan(lambda total, row: (total + row, None), jnp.zeros(4), rows)[0]

    rows = put(make_default_mesh(env), numbers(8, 4), "x")
    return Program(running, args=(rows,), reference=lambda rows: rows.sum(0))


CONSTRAINT_IS_A_HINT = deviation(
    "jax>=0.9",
    error="ValueError",
    match="can only refer to Auto axes of the mesh",
    reason="a constraint is a hint to the compiler; jax.reshard changes a type",
    issue="jax-ml/jax@005c14b4da9d",
)


@program(
    source="jax-ml/jax@89401bd3143e",
    platforms=("cpu",),
    releases="jax>=0.4.35",
    deviations=[CONSTRAINT_IS_A_HINT],
)
def constraint_on_the_way(env):
    """`with_sharding_constraint` on a default mesh, the classic hint, is an error from 0.9.0."""
    mesh = make_default_mesh(env, (2, 2), ("x", "y"))

    def step(x):
        return lax.with_sharding_constraint(2 * x, NamedSharding(mesh, P("y")))

    return Program(step, args=(put(mesh, numbers(8), "x"),), reference=lambda x: 2 * x)


IN_SPECS_DO_NOT_RESHARD = deviation(
    "jax>=0.9.1",
    error="ValueError",
    match="does not match the specs of the input",
    reason="in explicit mode in_specs state the shardings of the arguments and do not change them",
    issue="jax-ml/jax@991fb76bc1eb",
)


@program(
    source="jax-ml/jax@991fb76bc1eb",
    platforms=("cpu",),
    releases="jax>=0.4.35",
    deviations=[IN_SPECS_DO_NOT_RESHARD],
)
def shard_map_that_gathers(env):
    """`in_specs=P()` for a sharded argument no longer makes shard_map gather it from 0.9.1.

    Put `jax.reshard` before the shard_map, or leave `in_specs` out.
    """
    mesh = make_default_mesh(env)
    total = env.compat.shard_map(lambda x: x + x.sum(), mesh=mesh, in_specs=P(), out_specs=P())
    return Program(total, args=(put(mesh, numbers(8), "x"),), reference=lambda x: x + x.sum())


@program(source="jax-ml/jax@89401bd3143e", releases="jax>=0.5.3")
def auto_axes_asked_for(env):
    """With `axis_types=(AxisType.Auto,)` on the mesh, the same lines run on every release."""
    auto = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((SHARDS,), ("x",), axis_types=auto, devices=env.devices[:SHARDS])

    def lines(x):
        return x[:3].sum() + x.at[1].set(9)[::2] @ x[::2]

    return Program(
        lines,
        args=(env.put(numbers(8), NamedSharding(mesh, P("x"))),),
        reference=lambda x: np.float32(3 + (x[::2] ** 2).sum()),
    )


@probe(
    source="jax-ml/jax@252caebce348",
    devices=8,
    platforms=("cpu",),
    releases="jax>=0.4.35",
    params={
        "2x4": {"shape": (2, 4), "chosen": None},
        "reversed": {"shape": (2, 2), "chosen": (7, 6, 5, 4)},
        "fewer": {"shape": (1, 2), "chosen": None},
    },
)
def order_of_devices(env, shape, chosen):
    """Devices fill the mesh row by row, by id or as listed; a small mesh takes the first."""
    devices = None if chosen is None else [env.devices[i] for i in chosen]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        mesh = jax.make_mesh(shape, ("x", "y"), devices=devices)
    flat = chosen or range(int(np.prod(shape)))
    return Observed(
        [[device.id for device in row] for row in mesh.devices],
        np.array([*flat]).reshape(shape).tolist(),
    )


AXIS_TYPES_KEYWORD_ONLY = deviation(
    "jax<0.7",
    error="TypeError",
    match="takes 2 positional arguments but 3",
    reason="axis_types was keyword-only",
    issue="jax-ml/jax@584f9bfbd2be",
)


@probe(
    source="jax-ml/jax@584f9bfbd2be",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.5.3",
    deviations=[AXIS_TYPES_KEYWORD_ONLY],
)
def axis_types_by_position(env):
    """`make_mesh(shape, names, types)` accepts the third argument by position from 0.7.0."""
    types = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((2,), ("x",), types, devices=env.devices[:2])
    return Observed([kind.name for kind in mesh.axis_types], ["Auto"])
