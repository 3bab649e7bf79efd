"""Arguments that went away or moved, and containers that became others: calls that people wrote.

None of it is in a changelog but the deprecations. What was a list and is a tuple breaks code that
appends to it, or asks `isinstance(x, list)`, far from the call.
"""

from __future__ import annotations

import warnings

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, deviation, probe

from ._helpers import ROWS, refusal, refused

SEVERAL = {
    "broadcast_arrays": lambda: jnp.broadcast_arrays(ROWS, 1.0),
    "meshgrid": lambda: jnp.meshgrid(ROWS, ROWS),
    "atleast_1d": lambda: jnp.atleast_1d(1.0, 2.0),
    "atleast_2d": lambda: jnp.atleast_2d(1.0, 2.0),
    "unstack": lambda: jnp.unstack(ROWS),
}


@probe(
    source="jax-ml/jax#19531",
    platforms=("cpu",),
    params={
        "broadcast_arrays": {"name": "broadcast_arrays"},
        "meshgrid": {"name": "meshgrid"},
        "atleast_1d": {"name": "atleast_1d"},
        "atleast_2d": {"name": "atleast_2d"},
        "unstack": {"name": "unstack"},
    },
    deviations=[
        deviation(
            "jax<0.11.1",
            params=("broadcast_arrays", "meshgrid"),
            outcome="ok",
            reason="a list, as in NumPy before 2.0",
            issue="jax-ml/jax#39789",
        ),
        deviation(
            "jax<0.12",
            params=("atleast_1d", "atleast_2d"),
            outcome="ok",
            reason="a list, as in NumPy before 2.0",
            issue="jax-ml/jax#19531",
        ),
    ],
)
def several_arrays(env, name):
    """Functions of `jnp` that return several arrays, return a tuple of them as NumPy 2 does."""
    return Observed(type(SEVERAL[name]()).__name__, "tuple")


CALLS = {
    "axis_shapes": lambda: jax.make_mesh(axis_shapes=(1,), axis_names=("x",)).size,
    "axis_sizes": lambda: jax.make_mesh(axis_sizes=(1,), axis_names=("x",)).size,
    "lowering_platforms": lambda: _exported(lowering_platforms=("cpu",)),
    "platforms": lambda: _exported(platforms=("cpu",)),
    "copy_by_position": lambda: jnp.array(ROWS, np.float32, True).size,
    "accuracy_by_position": lambda: lax.exp(ROWS, None).size,
}


def _exported(**keywords):
    return len(jax.export.export(jax.jit(jnp.sin), **keywords)(ROWS).platforms)


@probe(
    source="jax-ml/jax@d78c899e6115",
    platforms=("cpu",),
    params={
        "axis_shapes": {"name": "axis_shapes"},
        "axis_sizes": {"name": "axis_sizes"},
        "lowering_platforms": {"name": "lowering_platforms"},
        "platforms": {"name": "platforms"},
        "copy_by_position": {"name": "copy_by_position"},
        "accuracy_by_position": {"name": "accuracy_by_position"},
    },
    deviations=[
        deviation(
            "jax<0.4.33",
            params=("axis_shapes", "axis_sizes"),
            error="AttributeError",
            match="make_mesh",
            reason="there was no make_mesh",
            issue="jax-ml/jax@d78c899e6115",
        ),
        deviation(
            "jax>=0.11.1",
            params=("axis_shapes",),
            error="TypeError",
            match="unexpected keyword argument 'axis_shapes'",
            reason="called axis_sizes, as that of AbstractMesh",
            issue="jax-ml/jax@d78c899e6115",
        ),
        deviation(
            "jax>=0.4.33,<0.11.1",
            params=("axis_sizes",),
            error="TypeError",
            match="unexpected keyword argument 'axis_sizes'",
            reason="called axis_shapes",
            issue="jax-ml/jax@d78c899e6115",
        ),
        deviation(
            "jax>=0.4.36",
            params=("lowering_platforms",),
            error="TypeError",
            match="unexpected keyword argument 'lowering_platforms'",
            reason="called platforms, which was taken beside it before",
            issue="jax-ml/jax@292a00b35afc",
        ),
        deviation(
            "jax>=0.12",
            params=("copy_by_position",),
            error="TypeError",
            match="takes from 1 to 2 positional arguments but 3 were given",
            reason="by keyword only, as in NumPy, and deprecated since 0.10.1",
            issue="jax-ml/jax@74ac1aff1920",
        ),
        deviation(
            "jax<0.6",
            params=("accuracy_by_position",),
            error="TypeError",
            match="takes 1 positional argument but 2 were given",
            reason="there was none",
            issue="jax-ml/jax@fa2a8cafba10",
        ),
        deviation(
            "jax>=0.9.2",
            params=("accuracy_by_position",),
            error="TypeError",
            match="takes 1 positional argument but 2 were given",
            reason="by keyword only",
            issue="jax-ml/jax@fa2a8cafba10",
        ),
    ],
)
def arguments(env, name):
    """Arguments under the name, or in the place, that they once had or have now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Observed(CALLS[name]() and "taken", "taken")


@probe(
    source="jax-ml/jax@04f9d460400d",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.11.1",
            outcome="ok",
            reason="taken, and refused where it was used",
            issue="jax-ml/jax@04f9d460400d",
        )
    ],
)
def struct_of_unknown_size(env):
    """`ShapeDtypeStruct((None, 3), ...)` is a ValueError from 0.11.1; as a note it was welcome."""
    return Observed(
        refusal(lambda: jax.ShapeDtypeStruct((None, 3), np.float32), "None"), refused("ValueError")
    )


@probe(
    source="jax-ml/jax@e3052b2cb2b5",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.11",
            error="TypeError",
            match="isn't a permutation",
            reason="they went to lax as they were",
            issue="jax-ml/jax@e3052b2cb2b5",
        )
    ],
)
def negative_axes_of_permute_dims(env):
    """`jnp.permute_dims(x, (-1, 0))`, as `jnp.transpose` always took it: from 0.11.0."""
    x = ROWS.reshape(2, 3)
    return Observed(jnp.permute_dims(x, (-1, 0)), x.T.astype(np.float64))


@probe(
    source="jax-ml/jax@be2f36d07e25",
    platforms=("cpu",),
    params={
        "cholesky": {"name": "cholesky"},
        "qr": {"name": "qr"},
        "eigh": {"name": "eigh"},
        "svd": {"name": "svd"},
    },
    deviations=[
        deviation(
            "jax<0.11.1",
            outcome="ok",
            reason="a NotImplementedError when it is lowered",
            issue="jax-ml/jax@be2f36d07e25",
        )
    ],
)
def factorisations_of_halves(env, name):
    """Factorisations of float16 are a TypeError from 0.11.1, which tells what is accepted."""
    factorise = getattr(lax.linalg, name)
    told = refusal(lambda: factorise(np.eye(2, dtype=np.float16)), "does not accept dtype float16")
    return Observed(told, refused("TypeError"))
