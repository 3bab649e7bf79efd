"""IRs from the worker to the verdict and the report: what gates, what warns, what informs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects import CELL, case

if TYPE_CHECKING:
    from .conftest import MakeProject

pytestmark = pytest.mark.cell
TOPIC = "cases/fam/topic.py"


def _program(fn: str, decorator: str = "program()", jit: str = "{}") -> str:
    """Return a case of one program of a vector of ones."""
    made = f"return Program(lambda x: {fn}, args=(np.ones(8, np.float32),), jit={jit})"
    return case(f"import numpy as np\n{made}", decorator)


def test_other_facts_fail_a_run_whose_values_are_the_same(new_project: MakeProject) -> None:
    """Here an argument that is given away."""
    project = new_project({TOPIC: _program("x * 2")})
    project.run("run")
    assert project.run("accept").code == 0
    project.write({TOPIC: _program("x * 2", jit="{'donate_argnums': 0}")})
    code, records = project.results()
    assert (code, records["case"].verdict) == (1, "changed")
    assert records["case"].reasons[0].startswith("fact donation: parameter 0 -> output ")


def test_other_work_warns_and_gates_where_the_case_says_so(new_project: MakeProject) -> None:
    """Twice the ones is the ones and the ones; the report says what replaced what."""
    project = new_project({TOPIC: _program("x * 2")})
    project.run("run")
    project.run("accept")
    project.write({TOPIC: _program("x + x")})
    ending = project.run("run")
    assert ending.code == 0
    assert f"warn stablehlo of fam/case on {CELL} is not its golden" in ending.out
    assert "multiply -> add" in ending.out.replace("broadcast-in-dim, constant, ", "")
    project.write({TOPIC: _program("x + x", "program(policy={'stablehlo': 'gate'})")})
    code, records = project.results()
    assert (code, records["case"].verdict) == (1, "changed")
    assert records["case"].reasons[0].startswith("stablehlo changed; if intended: ")


def test_a_line_moved_in_a_case_changes_nothing(new_project: MakeProject) -> None:
    """Where it is written is in every IR, and in none of its normal forms."""
    project = new_project({TOPIC: _program("x * 2")})
    project.run("run")
    project.run("accept")
    project.write({TOPIC: "# a comment\n\n" + _program("x * 2")})
    _, records = project.results()
    assert {str(kept.status) for kept in records["case"].ir.values()} == {"same"}
