"""`conformance.snapshot` in a script: each call is compared across releases."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.printed import find_in_text, split_command
from tests.projects import ROOT

if TYPE_CHECKING:
    from tests.projects import Project


SCRIPT = """\
import conformance
import jax
import jax.numpy as jnp
from beside import FACTOR

x = jnp.arange(4.0)


def scaled(x):
    return x * (FACTOR + (jax.__version__ >= "0.6.2"))


def norm(x):
    return jnp.sqrt((x * x).sum())


y = conformance.snapshot(scaled, x)
conformance.snapshot(norm, x=jnp.ones(4))
print(y.sum())
"""


pytestmark = pytest.mark.project({"scripts/report.py": SCRIPT, "scripts/beside.py": "FACTOR = 2\n"})
"""A script, and a module beside it."""


@pytest.mark.long
@pytest.mark.cell
def test_upgrade_compares_each_snapshot_call(project: Project) -> None:
    """Also after a change of a module that the script imports."""
    for factor in (2, 3):
        project.write({"scripts/beside.py": f"FACTOR = {factor}\n"})
        ending = project.run("upgrade", "0.6.1", "0.6.2", "scripts/report.py", "--json", "-")
        (one,) = ending.json["transitions"]
        assert (one["case"], one["kind"], one["changed_in"]) == ("report/scaled", "value", "0.6.2")
        after = 3.0 * (factor + 1)
        assert (one["before"], one["after"]) == (f"out[3] = {3.0 * factor}", f"out[3] = {after}")
        assert {one["case"] for one in ending.json["cases"]} == {"report/scaled", "report/norm"}


@pytest.mark.cell
def test_snapshot_call_is_selected_by_script_and_name(project: Project) -> None:
    """Reports print that name, and `run` and `bisect` accept it."""
    project.write({"scripts/report.py": SCRIPT.replace("sqrt((x * x)", "sqrt((x @ None)")})
    assert project.run("run", "scripts/report.py", "--cell", "0.6.2").code == 1
    assert project.run("report", "--markdown", "run.md").code == 0
    text = (project.path / "run.md").read_text()
    command = min((one for one in find_in_text(text) if "report.py::" in one), default=text)
    select = "scripts/report.py::norm"
    assert split_command(command) == [
        "conformance", "run", command.split()[2], "--cell", "jax0.6.2-py311-cpu8",
    ]  # fmt: skip
    ending = project.run("run", select, "--cell", "0.6.2", "--json", "-")
    assert [one["case"] for one in ending.json["results"]] == ["report/norm"]
    ending = project.run("bisect", "scripts/report.py::scaled", "--good", "0.6.1", "--bad", "0.6.2")
    assert "test of a suite" not in ending.err
    assert ending.code in {0, 1}, ending.err


@pytest.mark.long
@pytest.mark.cell
def test_script_that_ends_before_a_snapshot_call_is_reported(project: Project) -> None:
    """The error names the line of the missing call."""
    project.write({"scripts/report.py": SCRIPT.replace("y = ", "y = x if len(x) else ")})
    ending = project.run("run", "scripts/report.py", "--cell", "0.6.2", "--json", "-")
    errors = {record["case"]: record["error"] for record in ending.json["results"]}
    assert errors["report/norm"] is None
    assert errors["report/scaled"]["message"] == "report.py ended without the snapshot in line 17"


def test_snapshot_outside_the_harness_just_calls_the_function() -> None:
    """The script runs as without it."""
    script = "import conformance; print(conformance.snapshot(max, 1, 3, key=lambda x: -x))"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout == "1\n"


@pytest.mark.long
@pytest.mark.cell
def test_snapshot_call_has_all_devices_of_the_cell(project: Project) -> None:
    """As the script itself would have in that cell."""
    function = "def f(x):\n    raise ValueError(f'{jax.device_count()} devices')\n"
    script = f"import conformance\nimport jax\n\n\n{function}\n\nconformance.snapshot(f, 1.0)\n"
    project.write({"scripts/report.py": script})
    ending = project.run("run", "scripts/report.py", "--cell", "jax0.6.2-py311-cpu4", "--json", "-")
    (record,) = ending.json["results"]
    assert record["error"]["message"] == "4 devices"


@pytest.mark.long
@pytest.mark.cell
def test_goldens_of_snapshot_calls_survive_edits(project: Project) -> None:
    """They are stored next to the script."""
    assert project.run("run", "scripts/report.py", "--cell", "0.6.2", "--no-report").code == 1
    assert project.run("accept").code == 0
    assert (project.path / "scripts/goldens/report/golden/functions/norm/spans.toml").is_file()
    project.write({"scripts/beside.py": "FACTOR = 5\n"})
    ending = project.run("run", "scripts/report.py", "--cell", "0.6.2", "--json", "-")
    verdicts = {record["case"]: record["verdict"] for record in ending.json["results"]}
    assert verdicts == {"report/scaled": "changed", "report/norm": "match"}
