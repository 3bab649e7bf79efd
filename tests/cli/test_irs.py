"""IRs from worker to verdict and report: which changes gate, warn or only inform."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects import CELL, case

if TYPE_CHECKING:
    from .conftest import MakeProject

pytestmark = pytest.mark.cell
TOPIC = "cases/fam/topic.py"


def _program_case(fn: str, decorator: str = "program()", jit: str = "{}") -> str:
    """Return a case of a program that takes a vector of ones."""
    made = f"return Program(lambda x: {fn}, args=(np.ones(8, np.float32),), jit={jit})"
    return case(f"import numpy as np\n{made}", decorator)


def test_changed_fact_fails_a_run_with_equal_values(new_project: MakeProject) -> None:
    """The fact is a donated argument."""
    project = new_project({TOPIC: _program_case("x * 2")})
    project.run("run")
    assert project.run("accept").code == 0
    project.write({TOPIC: _program_case("x * 2", jit="{'donate_argnums': 0}")})
    code, records = project.results()
    assert (code, records["case"].verdict) == (1, "changed")
    assert records["case"].reasons[0].startswith("fact donation: parameter 0 -> output ")


@pytest.mark.long
def test_changed_stablehlo_warns_unless_the_policy_gates(new_project: MakeProject) -> None:
    """`x * 2` and `x + x` give equal values; the report names the replaced operation."""
    project = new_project({TOPIC: _program_case("x * 2")})
    project.run("run")
    project.run("accept")
    project.write({TOPIC: _program_case("x + x")})
    ending = project.run("run")
    assert ending.code == 0
    assert f"warn stablehlo of fam/case on {CELL} is not its golden" in ending.out
    assert "multiply -> add" in ending.out.replace("broadcast-in-dim, constant, ", "")
    project.write({TOPIC: _program_case("x + x", "program(policy={'stablehlo': 'gate'})")})
    code, records = project.results()
    assert (code, records["case"].verdict) == (1, "changed")
    assert records["case"].reasons[0].startswith("stablehlo changed; if intended: ")


def test_moved_source_lines_change_no_golden(new_project: MakeProject) -> None:
    """Every IR has source lines, and no canonical form has them."""
    project = new_project({TOPIC: _program_case("x * 2")})
    project.run("run")
    project.run("accept")
    project.write({TOPIC: "# a comment\n\n" + _program_case("x * 2")})
    _, records = project.results()
    assert {str(kept.status) for kept in records["case"].ir.values()} == {"same"}
