"""`conformance repro` of a script: one file that ends as the script did."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.projects import Project


SCRIPT = """\
import jax

print(jax.__name__)
if jax.__version__ >= '0.6.1':
    raise KeyError('axis')
"""
REPORT = """\
It prints:
```
$ export MINE=a
>>> import os
>>> os.environ['MINE'],
```
"""
CELL = ("--cell", "0.6.2")


pytestmark = pytest.mark.project({"report.py": SCRIPT})
"""A project with a script that fails from 0.6.1 on."""


@pytest.mark.long
@pytest.mark.cell
def test_repro_of_a_script_adds_a_header_to_it(project: Project) -> None:
    """With the requirements it imports; the file is checked by running it."""
    ending = project.run("repro", "report.py", *CELL, "--json", "-")
    assert ending.code == 0
    assert ending.json["file"] == "repro_report_0_6_2.py"
    assert ending.json["checked"]
    text = (project.path / "repro_report_0_6_2.py").read_text()
    assert text.endswith(f"\n\n{SCRIPT}")
    assert '#     "jax==0.6.2",' in text
    assert "flax" not in text
    assert "KeyError: 'axis'" in text
    assert len(text.splitlines()) < len(SCRIPT.splitlines()) + 20


@pytest.mark.cell
def test_repro_issue_of_a_script_is_complete(project: Project) -> None:
    """Title, expected behaviour with its release, and no placeholders."""
    ending = project.run("repro", "report.py", *CELL, "--good", "0.6.0", "--issue", "--no-check")
    assert ending.code == 0
    assert ending.out.startswith("**Title:** `KeyError: 'axis'` since jax 0.6.1\n")
    assert "Expected, as on jax 0.6.0: the script ends well" in ending.out
    assert "first bad: jax 0.6.1, last good: 0.6.0" in ending.out
    assert not re.search(r"TODO|FIXME|<[a-z ]+>|\bFILL\b", ending.out)


@pytest.mark.cell
def test_repro_of_a_pasted_report_sets_its_variables(project: Project) -> None:
    """Variables that the report exports."""
    project.write({"issue.md": REPORT})
    ending = project.run("repro", "issue.md", *CELL, "--out", "bug.py", "--no-check")
    assert ending.code == 0
    bare = getattr(sys, "_base_executable", sys.executable)
    ran = subprocess.run(
        [bare, project.path / "bug.py"], check=True, capture_output=True, text=True
    )
    assert ran.stdout == "('a',)\n"


@pytest.mark.cell
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((*CELL, "--cell", "0.6.1"), "got 2 cells, expected one for a script"),
        ((*CELL, "--run", "reports"), "--run: goes with a case, got a script"),
        ((*CELL, "--good", "0.6.0"), "--good 0.6.0: goes with --issue"),
        (("--cell", "0.6.2@tpu:v5e:2x2"), "expected a release on cpu for a script"),
    ],
)
def test_repro_of_a_script_refuses_options_of_cases(
    project: Project, options: tuple[str, ...], message: str
) -> None:
    """Before anything runs."""
    ending = project.run("repro", "report.py", *options)
    assert ending.code == 2
    assert message in ending.error


@pytest.mark.long
@pytest.mark.cell
def test_repro_accepts_a_script_in_a_linked_folder(project: Project) -> None:
    """The script itself is no other file, by either of its paths."""
    project.write({"elsewhere/report.py": "import jax\n1 / 0\n"})
    (project.path / "linked").symlink_to("elsewhere")
    ending = project.run("repro", "linked/report.py", *CELL, "--no-check", "--out", "bug.py")
    assert ending.code == 0, ending.error


@pytest.mark.long
@pytest.mark.cell
def test_repro_refuses_a_script_of_several_files(project: Project) -> None:
    """One file cannot reproduce it."""
    project.write(
        {"report.py": "import helper, jax\nhelper.check()", "helper.py": "def check(): 1 / 0"}
    )
    ending = project.run("repro", "report.py", *CELL)
    assert ending.code == 2
    assert re.search(
        r"report\.py: reads \S+/helper\.py, expected a script of one file", ending.error
    )
