"""`conformance run` without arguments runs the smoke sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects import case

if TYPE_CHECKING:
    from .conftest import MakeProject

MATRIX = '[matrix]\naxes = { jax = ["0.6.2"], platform = ["cpu"], deps = ["era"] }\n'


@pytest.mark.cell
def test_run_without_arguments_runs_the_smoke_sample(new_project: MakeProject) -> None:
    """With any selection, or `--all`, it runs everything selected."""
    body = "return Observed(np.int32(3), reference=np.int32(3))"
    project = new_project({
        "cases/maps/topic.py": case(body, name="one"),
        "cases/loops/topic.py": case(body, name="two"),
        "cases/smoke.toml": 'select = ["maps"]\n',
        "matrix/smoke.toml": MATRIX,
    })  # fmt: skip
    smoke = project.run("run")
    assert smoke.out.splitlines()[0] == "smoke run: 1 of 2 case ids; all: conformance run --all"
    assert "1 new" in smoke.out
    for arguments in (["--all"], ["--cell", "0.6.2"], ["--matrix", "smoke"], ["*"]):
        ended = project.run("run", *arguments)
        assert "smoke run" not in ended.out
        assert "2 new" in ended.out
    assert "1 job in 1 cell" in project.run("plan").out
    assert "2 jobs in 1 cell" in project.run("plan", "--all").out


def test_all_with_select_is_refused(new_project: MakeProject) -> None:
    """Nothing runs."""
    project = new_project({"cases/maps/topic.py": case("return", name="one")})
    ended = project.run("run", "--all", "maps")
    assert (ended.code, ended.error) == (2, "--all with SELECT (maps): give one of them")
