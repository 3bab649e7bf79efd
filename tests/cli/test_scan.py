"""`conformance scan`: exit status, text and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.projects import Project

GONE, THERE = (f"import jax\njax.{name}(f, x)\n" for name in ("tree_map", "tree.map"))


@pytest.mark.parametrize(
    ("source", "code", "found"), [(GONE, 1, "1 removed"), (THERE, 0, "no hits")]
)
def test_a_hit_is_exit_status_1(project: Project, source: str, code: int, found: str) -> None:
    """As of `upgrade`, where something breaks; the corpus is that of the package."""
    project.write({"script.py": source})
    ending = project.run("scan", "script.py", "--from", "0.5.3", "--to", "0.6.0")
    assert ending.code == code
    assert ending.out.splitlines()[-1] == (
        f"0.5.3 -> 0.6.0: 1 file, 2 lines, 2 uses of jax; {found}"
    )


def test_json_has_the_place_of_each_hit(project: Project) -> None:
    """And what the corpus knows about it."""
    project.write({"script.py": GONE})
    ending = project.run("scan", "script.py", "--from", "0.5.3", "--json", "-")
    (hit,) = ending.json["hits"]
    assert (hit["line"], hit["column"], hit["name"]) == (2, 1, "jax.tree_map")
    assert (hit["kind"], hit["release"], hit["loud"]) == ("removed", "0.6.0", True)
    assert hit["case"] == "api_removals/tree_functions[tree_map]"


def test_a_command_that_runs_no_jax_changes_no_hit(project: Project) -> None:
    """It is reported, and the exit status is that of the hits."""
    project.write({"script.py": GONE})
    ending = project.run(
        "scan", "script.py", "--from", "0.5.3", "--run", "exit 3", "--timeout", "60", "--json", "-"
    )
    assert ending.code == 1
    (hit,) = ending.json["hits"]
    assert hit["reached"] is None
    run = ending.json["run"]
    assert (run["command"], run["exit"], run["ended"]) == (
        "exit 3",
        3,
        "ended with exit status 3: no output",
    )


def test_fixes_are_shown_and_written(project: Project) -> None:
    """Status 1 as long as the code has hits."""
    project.write({"script.py": GONE})
    ends = ("--from", "0.5.3", "--to", "0.6.0")
    shown = project.run("scan", "script.py", *ends, "--fix")
    assert (shown.code, project.path.joinpath("script.py").read_text()) == (1, GONE)
    assert shown.out.splitlines()[:4] == [
        "--- script.py", "+++ script.py", "@@ -1,2 +1,2 @@", " import jax",
    ]  # fmt: skip
    assert project.run("scan", "script.py", *ends, "--fix", "--write").code == 0
    assert project.path.joinpath("script.py").read_text() == THERE
    again = project.run("scan", "script.py", *ends, "--fix")
    assert again.code == 0
    assert again.out.splitlines()[-1] == "fixes: 0 places in 0 files, for 0 of 0 hits"


def test_writing_needs_fixes(project: Project) -> None:
    """One error."""
    project.write({"script.py": GONE})
    ending = project.run("scan", "script.py", "--from", "0.5.3", "--write")
    assert ending.code == 2
    assert "--write: needs --fix" in ending.error
