"""Shardy and GSPMD."""

from __future__ import annotations

import pytest

from conformance.ir.graph import Sharding
from conformance.ir.normal.forms import to_exact
from conformance.ir.normal.inlining import inline_calls
from conformance.ir.normal.partitioning import unify_partitioning
from tests.ir.texts import after, neutral, ops, stablehlo, the

F32 = "(tensor<4xf32>) -> tensor<4xf32>"
MESH = '"sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> ()'
CUT = '#sdy.sharding<@mesh, [{"x"}]>'
SHARDY = f'%r = "sdy.sharding_constraint"(%x) <{{sharding = {CUT}}}> : {F32}'
GSPMD = (
    '%r = "stablehlo.custom_call"(%x) <{call_target_name = "Sharding"}> '
    f'{{mhlo.sharding = "{{devices=[2]0,1}}"}} : {F32}'
)
MANUAL = f"""%r = "sdy.manual_computation"(%x) <{{
in_shardings = #sdy.sharding_per_value<[<@mesh, [{{"x"}}]>]>,
manual_axes = #sdy<manual_axes{{"x"}}>,
out_shardings = #sdy.sharding_per_value<[<@mesh, [{{"x"}}]>]>}}> ({{
^bb0(%p: tensor<2xf32>):
%n = "stablehlo.negate"(%p) : (tensor<2xf32>) -> tensor<2xf32>
"sdy.return"(%n) : (tensor<2xf32>) -> ()
}}) : {F32}"""


def sharded(line: str) -> str:
    """Return StableHLO with a mesh of two devices."""
    text = stablehlo(*line.split("\n"))
    return text.replace("({\n", f"({{\n  {MESH}\n", 1)


@pytest.mark.parametrize("line", [SHARDY, GSPMD])
def test_a_constraint_becomes_one_operation(line: str) -> None:
    """With its sharding."""
    found = after(sharded(line), to_exact, unify_partitioning)
    constraint = the(found, "sharding-constraint")
    assert constraint.attributes == {"sharding": Sharding("tiled", (2,), (0, 1))}


def test_constraints_of_shardy_and_gspmd_are_equal() -> None:
    """An operation and a custom call."""
    assert neutral(sharded(SHARDY)) == neutral(sharded(GSPMD))
    assert neutral(sharded(SHARDY)) != neutral(sharded(GSPMD.replace("0,1", "1,0")))


def test_a_manual_computation_is_inlined_with_crossings() -> None:
    """The region itself is ordinary code."""
    found = after(sharded(MANUAL), to_exact, inline_calls, unify_partitioning)
    assert ops(found) == ["full-to-shard", "negate", "shard-to-full"]


def test_a_repeated_constraint_is_merged() -> None:
    """A different one is kept."""
    again = SHARDY.replace("%r", "%q") + "\n" + SHARDY.replace("(%x)", "(%q)")
    assert neutral(sharded(again)) == neutral(sharded(SHARDY))
    other = again.replace('[{"x"}]', "[{}]", 1)
    assert neutral(sharded(other)) != neutral(sharded(SHARDY))
