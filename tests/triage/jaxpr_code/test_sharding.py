"""Meshes, shard_map, collectives, placement."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.triage.jaxpr_code.program import UnsupportedJaxprError
from tests.ir.jaxpr.documents import eqn, jaxpr

from .documents import F32, F32S, NEWEST, VARYING, code, statements

MESH = ["mesh", ["x", 4]]
GRID = ["mesh", ["y", 2, "Explicit"], ["x", 4]]
EXPLICIT = ["mesh", ["x", 4, "Explicit"]]
INNER = jaxpr(eqn("psum_invariant", [0], axes=["x"]), inputs=(VARYING,), out=(1,))
NEWER: dict[str, Any] = {
    "in_specs": [[["x"]]], "out_specs": [[]], "check_vma": True, "newly_manual_axes": ["x"],
}  # fmt: skip
OLDER: dict[str, Any] = {
    "in_names": [[[0, ["x"]]]],
    "out_names": [[]],
    "check_rep": False,
    "auto": [],
    "rewrite": 1,
}


@pytest.mark.parametrize(
    ("params", "keywords"),
    [
        (NEWER, 'in_specs=(P("x"),), out_specs=P()'),
        (OLDER, 'in_specs=(P("x"),), out_specs=P(), check=False'),
    ],
)
def test_shard_map_of_all_releases(params: dict[str, Any], keywords: str) -> None:
    """By `env.compat`; the mesh is made once."""
    made = eqn("shard_map", [0], jaxpr={"jaxpr": 1}, mesh=MESH, **params)
    written = code(jaxpr(made, inputs=(F32,), out=(1,)), INNER)
    assert written.statements == (
        'mesh = env.mesh(4, "x")',
        (
            'def f(x):\n    def shard(x_shard):\n        psum = lax.psum(x_shard, "x")\n'
            "        return psum\n"
            f"    mapped = env.compat.shard_map(shard, mesh=mesh, {keywords})(x)\n    return mapped"
        ),
    )


@pytest.mark.parametrize("params", [NEWER, {**OLDER, "auto": ["y"]}])
def test_manual_axes_are_named(params: dict[str, Any]) -> None:
    """The others are left to the compiler."""
    made = eqn("shard_map", [0], jaxpr={"jaxpr": 1}, mesh=GRID, **params)
    mesh, function = code(jaxpr(made, inputs=(F32,), out=(1,)), INNER).statements
    assert 'axis_names={"x"})(x)' in function
    assert mesh == 'mesh = env.mesh((2, 4), ("y", "x"))'


def test_explicit_mesh_stays_explicit() -> None:
    """By a keyword of `env.mesh`."""
    made = eqn("reshard", [0], dst_sharding=["sharding", EXPLICIT, [["x"]], None])
    mesh, _ = code(jaxpr(made, inputs=(F32,), out=(1,))).statements
    assert mesh == 'mesh = env.mesh(4, "x", explicit=True)'


def collective(primitive: str, release: str = NEWEST, **params: Any) -> str:
    """Return the expression of a collective."""
    made = eqn(primitive, [0], **params)
    return statements(made, inputs=(F32,), out=(1,), release=release)[0].partition(" = ")[2]


def test_collectives_name_their_axes() -> None:
    """A single axis is no tuple."""
    assert collective("pmax", axes=["x", "y"]) == 'lax.pmax(x, ("x", "y"))'
    assert collective("axis_index", axis_name="x") == 'lax.axis_index("x")'
    perm: dict[str, Any] = {"axis_name": ["x"], "perm": [[0, 1], [1, 0]]}
    assert collective("ppermute", **perm) == 'lax.ppermute(x, "x", ((0, 1), (1, 0)))'
    gather: dict[str, Any] = {
        "axis_name": ["x"],
        "all_gather_dimension": 1,
        "tiled": True,
        "axis_size": 4,
    }
    assert collective("all_gather", **gather) == 'lax.all_gather(x, "x", axis=1, tiled=True)'
    swap: dict[str, Any] = {"axis_name": "x", "split_axis": 0, "concat_axis": 0, "tiled": False}
    assert collective("all_to_all", **swap) == 'lax.all_to_all(x, "x", 0, 0)'


def test_cast_to_varying_is_pvary() -> None:
    """Other casts have no code."""
    assert collective("pvary", axes=["x"]) == 'env.compat.pvary(x, "x")'
    with pytest.raises(UnsupportedJaxprError, match="pcast, parameter to"):
        collective("pcast", axes=["x"], to="reduced")


def test_cast_of_the_check_is_left_out() -> None:
    """Before 0.6.0 the check inserts it again."""
    made = eqn("pbroadcast", [0], (VARYING,), axes=["x"])
    assert statements(made, inputs=(F32,), out=(1,), release="0.5.3") == ["return x"]


def test_sum_of_a_number_is_staged() -> None:
    """Otherwise jax would compute it at once, without a collective."""
    made = eqn("psum", [[F32S, 1.0]], (F32S,), axes=["x"])
    written = statements(made, inputs=(), out=(0,))[0]
    assert written == 'psum = lax.psum(jax.jit(lambda: np.float32(1.0))(), "x")'


def test_sharding_has_an_unusual_memory_kind() -> None:
    """The usual kind depends on the release."""
    place = ["sharding", MESH, [["x"], []], "device"]
    made = eqn("sharding_constraint", [0], sharding=place, layout=None, context_mesh=["mesh"])
    written = 'lax.with_sharding_constraint(x, NamedSharding(mesh, P("x", None)'
    assert statements(made)[0] == f"placed = {written}))"
    older = statements(made, release="0.7.0")[0]
    assert older == f'placed = {written}, memory_kind="device"))'


def test_unknown_sharding_is_refused() -> None:
    """The message has its parameter."""
    with pytest.raises(UnsupportedJaxprError, match="sharding_constraint, parameter sharding"):
        statements(eqn("sharding_constraint", [0], sharding={"text": "odd"}))
