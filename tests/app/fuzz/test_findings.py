"""The folders of findings, with a case that runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.app.context import load_context
from conformance.app.fuzz.findings import FindingFolders, make_name
from conformance.corpus.discovery import discover, find_case_files
from tests.fuzz.test_script_file import make_finding

if TYPE_CHECKING:
    from pathlib import Path

CAUCHY = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

def body(x0):
    v1 = jax.scipy.stats.cauchy.ppf(x0)
    return v1

function = body
args = (
    np.array([0.25, 2.0], "float32"),
)
"""


def make_folders(folder: Path, lines: list[str]) -> FindingFolders:
    """Return the folders of a campaign over a change of 0.12.0."""
    return FindingFolders(
        context=load_context(), campaign=folder, releases=("0.11.2", "0.12.0"),
        versions={"jax": "0.12.0"}, jobs=2, report=lines.append,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.cell
def test_a_new_finding_has_a_case_that_declares_the_change(tmp_path: Path) -> None:
    """Proposed once: an edited one stays."""
    finding = make_finding(kind="nan", operations=("jax.scipy.stats.cauchy.ppf",), script=CAUCHY)
    lines: list[str] = []
    folders = replace(make_folders(tmp_path, lines), cases=tmp_path / "cases")
    folders.write(finding)
    folder = tmp_path / "findings" / "abc"
    assert {file.name for file in folder.iterdir()} == {"program.py", "case.py", "issue.md"}
    (case,) = discover([folder / "case.py"])
    assert case.name == "ppf_abc"
    (copy,) = discover(find_case_files(tmp_path / "cases"))
    assert copy.id == "fuzzing/ppf_abc"
    assert '"jax<0.12"' in (folder / "case.py").read_text()
    (folder / "case.py").write_text("edited")
    folders.write(finding)
    assert (folder / "case.py").read_text() == "edited"
    assert lines == []


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"known": "numerics/sums"}, False),
        ({"script": "import jax\n\nprobe = 1\nfunction = args = ()\n"}, True),
    ],
)
def test_a_finding_without_a_case_has_the_other_files(
    tmp_path: Path, changes: dict[str, Any], reported: bool
) -> None:
    """A known one needs none; a script that cannot become one is reported."""
    lines: list[str] = []
    make_folders(tmp_path, lines).write(make_finding(**changes))
    folder = tmp_path / "findings" / "abc"
    assert {file.name for file in folder.iterdir()} == {"program.py", "issue.md"}
    assert any("abc: no case proposed: " in line for line in lines) is reported


def test_a_case_is_named_by_its_operation() -> None:
    """Any operation gives a name."""
    assert make_name(make_finding(operations=(".at[].divide",))) == "divide_abc"
    assert make_name(make_finding(operations=())) == "program_abc"
