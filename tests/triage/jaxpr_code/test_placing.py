"""Meshes, shard_map, collectives, placement."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.triage.jaxpr_code.code import NotSayableError
from tests.ir.jaxpr.documents import eqn, jaxpr

from .documents import F32, F32S, NEWEST, VARYING, code, statements

MESH = ["mesh", ["x", 4]]
GRID = ["mesh", ["y", 2, "Explicit"], ["x", 4]]
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
    ("release", "params", "call"),
    [
        (NEWEST, NEWER, 'jax.shard_map(shard, mesh=mesh, in_specs=(P("x"),), out_specs=P())(x)'),
        (
            "0.6.0",
            OLDER,
            'shard_map(shard, mesh=mesh, in_specs=(P("x"),), out_specs=P(), check_rep=False)(x)',
        ),
    ],
)
def test_shard_map(release: str, params: dict[str, Any], call: str) -> None:
    """In the spelling of its release; the mesh is made once."""
    made = eqn("shard_map", [0], jaxpr={"jaxpr": 1}, mesh=MESH, **params)
    said = code(jaxpr(made, inputs=(F32,), out=(1,)), INNER, release=release)
    assert said.functions == (
        (
            'def f(x):\n    def shard(x_shard):\n        psum = lax.psum(x_shard, "x")\n'
            f"        return psum\n    mapped = {call}\n    return mapped"
        ),
    )
    assert said.meshes == {"mesh": (("x", 4, "Auto"),)}
    assert 'mesh = Mesh(np.array(jax.devices()[:4]), "x")\n' in said.source
    compile(said.source, "f", "exec")


def test_some_axes_of_a_mesh() -> None:
    """The others are left to the compiler; their types are told where they are not usual."""
    made = eqn("shard_map", [0], jaxpr={"jaxpr": 1}, mesh=GRID, **NEWER)
    said = code(jaxpr(made, inputs=(F32,), out=(1,)), INNER)
    assert 'out_specs=P(), axis_names={"x"})(x)' in said.source
    assert (
        'mesh = Mesh(np.array(jax.devices()[:8]).reshape(2, 4), ("y", "x"), '
        "axis_types=(jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto))"
    ) in said.source


def collective(primitive: str, release: str = NEWEST, **params: Any) -> str:
    """Return the expression of a collective."""
    made = eqn(primitive, [0], **params)
    return statements(made, inputs=(F32,), out=(1,), release=release)[0].partition(" = ")[2]


def test_collectives() -> None:
    """One axis stands alone, several are a tuple."""
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


@pytest.mark.parametrize(
    ("release", "said"),
    [(NEWEST, 'lax.pcast(x, "x", to="varying")'), ("0.6.2", 'lax.pvary(x, "x")')],
)
def test_what_varies(release: str, said: str) -> None:
    """By the function of its release."""
    assert collective("pvary", release, axes=["x"]) == said


def test_what_varies_before_types_told() -> None:
    """The check puts it there once more."""
    made = eqn("pbroadcast", [0], (VARYING,), axes=["x"])
    assert statements(made, inputs=(F32,), out=(1,), release="0.5.3") == ["return x"]


def test_a_sum_of_a_number_is_staged() -> None:
    """Else jax would compute it at once, and there would be no collective."""
    made = eqn("psum", [[F32S, 1.0]], (F32S,), axes=["x"])
    said = statements(made, inputs=(), out=(0,))[0]
    assert said == 'psum = lax.psum(jax.jit(lambda: np.float32(1.0))(), "x")'


def test_shardings() -> None:
    """With a memory kind, unless it is the usual one of the release."""
    place = ["sharding", MESH, [["x"], []], "device"]
    made = eqn("sharding_constraint", [0], sharding=place, layout=None, context_mesh=["mesh"])
    said = 'lax.with_sharding_constraint(x, NamedSharding(mesh, P("x", None)'
    assert statements(made)[0] == f"placed = {said}))"
    older = statements(made, release="0.7.0")[0]
    assert older == f'placed = {said}, memory_kind="device"))'


def test_a_sharding_that_is_not_understood() -> None:
    """It is named, and nothing is written in its place."""
    with pytest.raises(NotSayableError, match="sharding_constraint, parameter sharding"):
        statements(eqn("sharding_constraint", [0], sharding={"text": "odd"}))
