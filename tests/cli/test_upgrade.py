"""`conformance upgrade` of real releases: output, files and errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.runs.directory import RunDirectory
from tests.projects import HEAD, ROOT
from tests.workbench import planned_cell, python_of

if TYPE_CHECKING:
    from tests.projects import Project

    from .conftest import MakeProject

CASES = f"""\
import itertools

{HEAD}

from jax import lax


def since(env, release):
    return tuple(map(int, env.cell.release.split("."))) >= release


@program(
    devices=1,
    deviations=[deviation("jax>=0.6.1", error="KeyError", issue="jax-ml/jax#1", reason="gone")],
)
def breaks(env):
    if since(env, (0, 6, 1)):
        raise KeyError("axis")
    return Program(lambda x: x * 2, args=(np.float32([1, 2]),), reference=lambda x: x * 2)


@program(devices=1)
def goes_wrong(env):
    factor = 3 if since(env, (0, 6, 2)) else 2
    return Program(lambda x: x * factor, args=(np.float32([1, 2]),), reference=lambda x: x * 2)


@program(devices=2)
def communicates(env):
    over = env.mesh(2, "x")
    def f(x):
        y = lax.all_gather(x, "x") if since(env, (0, 6, 1)) else lax.psum(x, "x")
        return y.sum()
    f = env.compat.shard_map(f, mesh=over, in_specs=jax.sharding.PartitionSpec("x"),
                             out_specs=jax.sharding.PartitionSpec(), check=False)
    return Program(f, args=(np.float32([1, 2]),), reference=lambda x: x.sum())


@program(devices=1, releases="jax>=0.6")
def comes_later(env):
    return Program(lambda x: x, args=(np.float32([1, 2]),), reference=lambda x: x)


@probe()
def detour(env):
    return 3 if env.cell.release == "0.6.1" else 2


@probe()
def the_same(env):
    return jax.numpy.arange(3)
""".replace("import itertools\n", "import jax\n")
ENDS = ("0.5.3", "0.6.2")


pytestmark = [
    pytest.mark.project({"cases/family/topic.py": CASES}, locks=["jax0.5.3-py311"]),
]
"""A project with cases that change from release to release."""


def upgrade_json(project: Project, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Upgrade, and return the exit status and the JSON."""
    ending = project.run("upgrade", *ENDS, *arguments, "--json", "-")
    data: dict[str, Any] = ending.json
    return ending.code, data


def list_changes(answer: dict[str, Any]) -> dict[tuple[str, str], tuple[str, str, str]]:
    """Return kind, artifact and last release before each change, by case and release."""
    return {
        (one["case"].partition("/")[2], one["changed_in"]): (
            one["kind"], one["artifact"], one["last"],
        )
        for one in answer["transitions"]
    }  # fmt: skip


@pytest.mark.cell
def test_upgrade_finds_changes_with_release_kind_and_artifact(project: Project) -> None:
    """Exit 1, because a case breaks."""
    code, data = upgrade_json(project)
    assert code == 1
    assert (data["from"], data["to"], data["platforms"]) == (*ENDS, ["cpu8"])
    assert list_changes(data) == {
        ("breaks", "0.6.1"): ("broken", "ending", "0.6.0"),
        ("goes_wrong", "0.6.2"): ("wrong", "value", "0.6.1"),
        ("communicates", "0.6.1"): ("facts", "collectives", "0.6.0"),
        # Another case breaks on 0.6.1, so every case is tried there.
        ("detour", "0.6.1"): ("value", "value", "0.6.0"),
        ("detour", "0.6.2"): ("value", "value", "0.6.1"),
    }
    assert data["counts"] == {
        "broken": 1, "wrong": 1, "value": 0, "facts": 1, "larger": 0, "ending": 0, "fixed": 0,
        "unchanged": 2,
    }  # fmt: skip
    (later,) = data["not_compared"]
    assert later["case"] == "family/comes_later"
    assert "applies to jax>=0.6" in later["reason"]
    broken = next(one for one in data["transitions"] if one["kind"] == "broken")
    assert (broken["before"], broken["after"]) == ("ok", "KeyError: 'axis'")
    assert broken["upstream"] == "jax-ml/jax#1"
    assert broken["command"].startswith("conformance repro family/breaks --cell jax0.6.1-py311")
    assert data["jobs"]["tried"] < data["jobs"]["of"]


@pytest.mark.long
@pytest.mark.cell
def test_upgrade_finds_a_subset_of_a_thorough_upgrade(project: Project) -> None:
    """Fewer jobs never lead to another result."""
    _, usual = upgrade_json(project)
    _, thorough = upgrade_json(project, "--thorough")
    assert list_changes(usual).items() <= list_changes(thorough).items()
    assert thorough["jobs"]["tried"] == thorough["jobs"]["of"]


@pytest.mark.long
@pytest.mark.cell
def test_upgrade_prints_summary_and_groups_with_commands(project: Project) -> None:
    """The same as Markdown; the upgrade is a run as any other."""
    ending = project.run("upgrade", *ENDS, "--markdown", "upgrade.md", "--no-report")
    lines = ending.out.splitlines()
    assert lines[0] == (
        "From jax 0.5.3 to 0.6.2 on cpu8, of 5 cases 1 breaks (in 0.6.1), 1 becomes silently wrong "
        "(in 0.6.2), 1 is compiled to something else and 2 are unchanged. 1 of these changes "
        "raises no error. 1 of 5 cases breaks only between the ends (in 0.6.1), not in 0.6.2. 1 "
        "case was tried on some of the releases only: --thorough tries all."
    )
    assert "broken: 1" in lines
    assert "  in 0.6.1: ok -> KeyError: 'axis'" in lines
    assert "    upstream jax-ml/jax#1" in lines
    command = next(line.split() for line in lines if "conformance diff" in line)
    shown = project.run(*command[1:])
    assert (shown.code, "all-gather" in shown.out) == (1, True), shown
    markdown = (project.path / "upgrade.md").read_text()
    assert lines[0] in markdown
    (row,) = (line for line in markdown.splitlines() if line.startswith("| 0.6.1 | `family/breaks"))
    *cells, package, upstream = row.strip("| ").split(" | ")
    assert cells == ["0.6.1", "`family/breaks`", "`ok`", "`KeyError: 'axis'`"]
    assert package.startswith("jax or ")  # numpy and others moved with it
    assert upstream == "jax-ml/jax#1"
    run = RunDirectory(next((project.path / "reports/runs").iterdir()))
    assert {cell.release for cell in run.read_run().cells} == {"0.5.3", "0.6.0", "0.6.1", "0.6.2"}
    assert "KeyError: 'axis'" in project.run("report", run.path, "--markdown", "-").out


@pytest.mark.cell
def test_report_recreates_the_upgrade_page(project: Project) -> None:
    """From the run directory alone; a corrupt upgrade.json is one error."""
    data = project.run("upgrade", *ENDS, "family/goes_wrong", "--json", "-", "--no-report").json
    run = next((project.path / "reports/runs").iterdir())
    assert json.loads((run / "upgrade.json").read_text()) == data
    ending = project.run("report", run)
    assert (ending.code, ending.out.split()[-1]) == (0, (run / "report/upgrade.html").as_uri())
    page = (run / "report/upgrade.html").read_text()
    assert data["verdict"] in page
    assert "cases/family/goes_wrong.html#cpu8@0.6.2" in page
    (run / "upgrade.json").write_text("{")
    ending = project.run("report", run)
    expected = "upgrade.json: expected the JSON of an upgrade"
    assert (ending.code, ending.error.count(expected)) == (2, 1)
    assert ending.out.split()[-1] == (run / "report/index.html").as_uri()
    assert not (run / "report/upgrade.html").exists()
    assert "upgrade.json: expected" in (run / "report/index.html").read_text()


@pytest.mark.cell
def test_upgrade_that_breaks_nothing_exits_0(project: Project) -> None:
    """The summary says so."""
    ending = project.run("upgrade", *ENDS, "family/the_same", "--no-report")
    assert ending.code == 0
    assert ending.out.startswith(
        "From jax 0.5.3 to 0.6.2 on cpu8, of 1 case 1 is unchanged. Nothing breaks."
    )


@pytest.mark.cell
def test_lock_file_can_be_an_end_of_an_upgrade(project: Project) -> None:
    """Its pins replace those of the release."""
    project.write({"old.txt": "jax==0.5.3\njaxlib==0.5.3\nunknown-thing==1.0\n"})
    ending = project.run("upgrade", "old.txt", "0.6.2", "family/breaks", "--json", "-")
    assert ending.json["from"] == "old.txt (jax 0.5.3)"
    assert list_changes(ending.json) == {("breaks", "0.6.1"): ("broken", "ending", "0.6.0")}


@pytest.mark.long
@pytest.mark.cell
def test_upgrade_between_equal_environments_finds_no_change(project: Project) -> None:
    """All jobs run, none from the cache."""
    python = python_of(planned_cell("0.6.2"))
    twin = project.path / "twin" / "bin" / "python"
    twin.parent.parent.symlink_to(python.parent.parent)
    ending = project.run("upgrade", f"path:{python}", f"path:{twin}", "--json", "-", "--fresh")
    assert ending.code == 0
    assert ending.json["transitions"] == []
    assert ending.json["from"] == f"path:{python} (jax 0.6.2)"


@pytest.mark.long
@pytest.mark.cell
def test_upgrade_reports_a_broken_vmap_variant_as_same_as(new_project: MakeProject) -> None:
    """The program itself stays right, so the change is not one of its value."""
    files = [f"matrix/locks/jax{release}-py311.txt" for release in ("0.8.0", "0.8.1")]
    files += [f"cases/linearize_transpose/{name}.py" for name in ("_helpers", "gauss_newton")]
    project = new_project({name: (ROOT / name).read_text() for name in files})
    select = "linearize_transpose/product_made_varying"
    ending = project.run("upgrade", "0.8.0", "0.8.1", select, "--json", "-")
    assert ending.code == 1, ending.err
    (change,) = ending.json["transitions"]
    assert (change["kind"], change["artifact"], change["before"]) == ("broken", "same_as", "agrees")
    assert change["after"].startswith("vmap_of_one: raised TypeError: ")
    assert change["upstream"] == "jax-ml/jax#34249"


@pytest.mark.parametrize(
    ("ends", "code", "message"),
    [
        (("0.6.2", "0.5.3"), 2, "0.6.2 is jax 0.6.2, newer than 0.5.3, which is jax 0.5.3"),
        (("0.6.2", "<0.6"), 2, "the older first: conformance upgrade '<0.6' 0.6.2"),
        (("0.6.2", "==0.6.2"), 2, "0.6.2 and ==0.6.2 are both 0.6.2, expected two"),
        (("0.6.2", "0.6.99"), 2, "0.6.99"),
        (("path:/nowhere/python", "0.6.2"), 2, "/nowhere/python"),
        (("empty.txt", "0.6.2"), 2, "empty.txt: pins no package"),
        (("other.txt", "0.6.2"), 2, "other.txt: pins no jax, expected one to upgrade"),
        (("0.5.3", "0.6.2", "family/nothing"), 3, "no case matches family/nothing"),
        (("0.5.3", "0.6.2", "--platform", "abacus"), 2, "abacus"),
    ],
)
def test_invalid_arguments_of_upgrade_are_refused_before_any_job(
    project: Project, ends: tuple[str, ...], code: int, message: str
) -> None:
    """One error line each."""
    project.write({"empty.txt": "", "other.txt": "numpy==2.0.2\n"})
    ending = project.run("upgrade", *ends)
    assert (ending.code, message in ending.error) == (code, True), ending
